import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// The console is static files that the host serves under /. During development,
// `npm run dev` serves them beside a host whose address is in MORTISE_SERVER.
const host = process.env["MORTISE_SERVER"] ?? "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [svelte()],
  base: "/",
  build: {
    outDir: "dist",
    assetsDir: "console",
    target: "es2023",
    modulePreload: { polyfill: false }, // which would be a script in the page
    assetsInlineLimit: 0, // data: addresses are not in the content security policy
    reportCompressedSize: false,
  },
  server: { proxy: { "/api": host, "/auth": host } },
});
