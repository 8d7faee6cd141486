'use strict';
const fs = require('node:fs'), path = require('node:path'), os = require('node:os'), crypto = require('node:crypto');

// One file per record: (tenant, operator, key). The record is written after the effect, a marker before it.
class Store {
  constructor(dir) { this.dir = dir ?? path.join(os.tmpdir(), 'webhook-emit'); fs.mkdirSync(this.dir, { recursive: true }); }
  file(tenant, key) { return path.join(this.dir, crypto.createHash('sha256').update(`${tenant}\n${key}`).digest('hex') + '.json'); }
  get(tenant, key) { try { return JSON.parse(fs.readFileSync(this.file(tenant, key), 'utf8')); } catch { return null; } }
  put(tenant, key, value) { const f = this.file(tenant, key); fs.writeFileSync(f + '.tmp', JSON.stringify(value)); fs.renameSync(f + '.tmp', f); }
}
module.exports = { Store };
