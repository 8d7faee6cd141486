// Forgets to call run().
import { Plugin } from "mortise";

new Plugin("test.idle", { version: "0.1.0" });
