import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import { guides } from './guides.ts'

export default defineConfig({
  base: './',
  plugins: [react(), guides()],
  experimental: {
    // Scripts find each other relatively. index.html is served for every route, however deep, so it alone names files from
    // the root; a server behind a path prefix writes that prefix before them. The page learns it from its own address.
    renderBuiltUrl: (filename, { hostType }) => (hostType === 'html' ? `/${filename}` : { relative: true }),
  },
  build: {
    outDir: '../dist/web',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: true,
    rolldownOptions: {
      // The contract's schemas stand beside its client; the page takes the client and leaves the schemas.
      treeshake: { moduleSideEffects: (id: string) => !/\/src\/contract\/|\/typebox\//.test(id) },
    },
  },
})
