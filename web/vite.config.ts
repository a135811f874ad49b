import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const SERVER = "http://127.0.0.1:7077"; // `icewright serve` on this machine

// The server serves what is built at /ui/, with names by content: they never change, and may be kept for ever.
export default defineConfig({
  base: "/ui/",
  plugins: [react(), tailwindcss()],
  build: {
    outDir: "../src/icewright/server/http/static/ui",
    emptyOutDir: true,
    target: "es2023",
    assetsInlineLimit: 0, // the content security policy allows no data: addresses
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 750,
  },
  server: { proxy: { "/api": { target: SERVER }, "/login": { target: SERVER } } },
  test: { environment: "node", include: ["src/**/*.test.ts"] },
});
