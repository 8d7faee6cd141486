// Google's own client library against the receiver: a sign-in, a mail, its thread, a reply,
// the history. Run it where @googleapis/gmail is installed: node client.mjs http://127.0.0.1:8025
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { gmail as open, auth } from "@googleapis/gmail";

const at = process.argv[2];
const client = new auth.OAuth2({
  clientId: "outreach",
  clientSecret: "none",
  redirectUri: "http://127.0.0.1:1/callback",
  endpoints: { oauth2AuthBaseUrl: `${at}/o/oauth2/v2/auth`, oauth2TokenUrl: `${at}/token` },
});
const { codeVerifier } = await client.generateCodeVerifierAsync();
const challenge = createHash("sha256").update(codeVerifier).digest("base64url");
const scope = ["https://www.googleapis.com/auth/gmail.send", "https://www.googleapis.com/auth/gmail.readonly"];
const page = client.generateAuthUrl({ access_type: "offline", scope, code_challenge: challenge, code_challenge_method: "S256", state: "s" });
const back = new URL((await fetch(page, { redirect: "manual" })).headers.get("location"));
assert.equal(back.searchParams.get("state"), "s");

const gmail = open({ version: "v1", auth: client, rootUrl: `${at}/` });
await assert.rejects(gmail.users.messages.list({ userId: "me", q: "x" }));
const { tokens } = await client.getToken({ code: back.searchParams.get("code"), codeVerifier });
assert.ok(tokens.access_token && tokens.refresh_token);
client.setCredentials(tokens);

const mail = "From: a@example.edu\r\nTo: b@example.org\r\nSubject: From a client\r\nMessage-ID: <client@example.edu>\r\n\r\nHi\r\n";
const raw = Buffer.from(mail).toString("base64url");
const sent = (await gmail.users.messages.send({ userId: "me", requestBody: { raw } })).data;
assert.deepEqual(sent.labelIds, ["SENT"]);
const found = (await gmail.users.messages.list({ userId: "me", q: "rfc822msgid:client@example.edu" })).data;
assert.equal(found.messages[0].id, sent.id);
const before = (await gmail.users.getProfile({ userId: "me" })).data;
const reply = { from: "b@example.org", subject: "Re: From a client", in_reply_to: "<client@example.edu>", text: "Thank you" };
await fetch(`${at}/deliver`, { method: "POST", body: JSON.stringify(reply) });
const history = (await gmail.users.history.list({ userId: "me", startHistoryId: before.historyId, historyTypes: ["messageAdded"], labelId: "INBOX" })).data;
const came = history.history[0].messagesAdded[0].message;
assert.equal(came.threadId, sent.threadId);
const thread = (await gmail.users.threads.get({ userId: "me", id: sent.threadId, format: "full" })).data;
assert.deepEqual(thread.messages.map((m) => m.id), [sent.id, came.id]);
const whole = (await gmail.users.messages.get({ userId: "me", id: came.id })).data;
assert.equal(Buffer.from(whole.payload.body.data, "base64url").toString().trim(), "Thank you");
await gmail.users.messages.send({ userId: "me", requestBody: { raw, threadId: sent.threadId } });
await assert.rejects(gmail.users.threads.get({ userId: "me", id: "none" }), { status: 404 });
client.setCredentials({ refresh_token: tokens.refresh_token });
assert.equal((await gmail.users.threads.get({ userId: "me", id: sent.threadId })).data.messages.length, 3);
console.log("the client is content");
