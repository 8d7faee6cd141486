// An OpenID Connect provider on this machine: it signs in the account that the test names
// next, without asking. It checks what the host sends: PKCE, its secret, codes used once.
import { createHash, createSign, generateKeyPairSync, randomBytes } from "node:crypto";
import { createServer } from "node:http";

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const encode = (value) => Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");

export class Provider {
  client = { id: "mortise", secret: randomBytes(16).toString("hex") };
  account = "";
  #codes = new Map();

  async start() {
    this.server = createServer((request, response) => {
      this.#answer(request, response).catch((err) => response.writeHead(500).end(String(err)));
    });
    await new Promise((done) => this.server.listen(0, "127.0.0.1", done));
    this.issuer = `http://127.0.0.1:${this.server.address().port}`;
  }

  stop() {
    this.server?.closeAllConnections();
    this.server?.close();
  }

  async #answer(request, response) {
    const url = new URL(request.url, this.issuer);
    const json = (status, value) => response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(value));
    switch (url.pathname) {
      case "/.well-known/openid-configuration":
        return json(200, {
          issuer: this.issuer, authorization_endpoint: `${this.issuer}/authorize`, token_endpoint: `${this.issuer}/token`, jwks_uri: `${this.issuer}/keys`,
          response_types_supported: ["code"], subject_types_supported: ["public"], id_token_signing_alg_values_supported: ["RS256"],
          authorization_response_iss_parameter_supported: true, code_challenge_methods_supported: ["S256"],
        });
      case "/keys":
        return json(200, { keys: [{ ...publicKey.export({ format: "jwk" }), kid: "one", alg: "RS256", use: "sig" }] });
      case "/authorize": {
        const code = randomBytes(16).toString("hex");
        this.#codes.set(code, { account: this.account, nonce: url.searchParams.get("nonce"), challenge: url.searchParams.get("code_challenge"), redirect: url.searchParams.get("redirect_uri") });
        const back = new URL(url.searchParams.get("redirect_uri"));
        back.search = new URLSearchParams({ code, state: url.searchParams.get("state"), iss: this.issuer }).toString();
        return response.writeHead(302, { Location: back.href }).end();
      }
      case "/token": {
        let body = "";
        for await (const chunk of request) body += chunk;
        const form = new URLSearchParams(body);
        const given = this.#codes.get(form.get("code"));
        this.#codes.delete(form.get("code"));
        const verified = createHash("sha256").update(form.get("code_verifier") ?? "").digest("base64url");
        if (given === undefined || verified !== given.challenge || form.get("redirect_uri") !== given.redirect) return json(400, { error: "invalid_grant" });
        const now = Math.floor(Date.now() / 1000);
        const claims = { iss: this.issuer, aud: this.client.id, sub: given.account, nonce: given.nonce, iat: now, exp: now + 300, auth_time: now };
        const signed = `${encode({ alg: "RS256", kid: "one", typ: "JWT" })}.${encode(claims)}`;
        return json(200, { access_token: randomBytes(16).toString("hex"), token_type: "Bearer", expires_in: 300, id_token: `${signed}.${createSign("RSA-SHA256").update(signed).sign(privateKey, "base64url")}` });
      }
    }
    return json(404, { error: "not_found" });
  }
}
