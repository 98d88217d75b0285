import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** The service that `npm run dev` speaks to. */
const service = process.env.HEADWAY_URL ?? "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../src/headway/api/page",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the page's policy allows no data: fonts or scripts
    chunkSizeWarningLimit: 900,
    manifest: true, // tests add up from it what a first load costs
  },
  server: { proxy: { "/api": service, "/healthz": service } },
});
