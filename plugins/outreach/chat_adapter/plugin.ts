// What the host starts. Tests import operations.ts, which does not serve.

import { plugin } from "./operations.ts";

plugin.run();
