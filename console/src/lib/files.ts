/** Files that calls are given: artifacts of a session, which take bytes from this browser. */
import { request, type Schemas } from "./api/client.ts";
import { size } from "./text.ts";

/** The largest file that is sent from here, in bytes, of which the request has a third more. */
export const mostUpload = 2 * 1024 * 1024;

/** Adds files to a session, one after the other. Throws for one that is too large. */
export async function addFiles(session: string, files: readonly File[]): Promise<Schemas["Artifact"][]> {
  const added: Schemas["Artifact"][] = [];
  for (const file of files) {
    if (file.size > mostUpload) throw new Error(`${file.name} has ${size(file.size)}; what is larger than ${size(mostUpload)} is added with: mortise artifacts add --session ${session} ${file.name}`);
    added.push(await request("add-artifact", { path: { id: session }, body: { name: file.name, content: base64(new Uint8Array(await file.arrayBuffer())) } }));
  }
  return added;
}

function base64(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(text);
}
