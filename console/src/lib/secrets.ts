/** Secrets as rows of a list. */
import type { Request, Schemas } from "./api/client.ts";

/** Returns the request that deletes the secret of a row: its name and all else that tells it from others. */
export function deletion(row: Schemas["SecretKept"]): Request<"delete-secret"> {
  const whose = row.scope === "system" ? { system: true } : { user: row.subject };
  return { path: { name: row.name }, query: { plugin: row.plugin, ...whose } };
}
