declare module 'virtual:guides' {
  interface Guide {
    /** `first-hour`, `reference/commands` */
    readonly name: string
    readonly title: string
    readonly load: () => Promise<{ readonly default: { readonly title: string; readonly html: string } }>
  }
  const guides: readonly Guide[]
  export default guides
}
