// What the host starts. Tests import operations.ts, which serves nobody.

import { plugin } from "./operations.ts";

plugin.run();
