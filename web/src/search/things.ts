/** Something with a page of its own, by all that it is called: pages, types, registries, guides. */
export interface Thing {
  readonly names: readonly string[]
}

/** How well a text names a thing: `exact` is one of its names, `start` begins a word of one. */
export type Fit = 'exact' | 'start' | 'part'

/** @returns undefined where a word of the text is in no name of the thing */
export function fitOf({ names }: Thing, text: string): Fit | undefined {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const asked = words.join(' ')
  const called = names.map((name) => name.toLowerCase())
  if (called.includes(asked)) return 'exact'
  if (words.length > 0 && called.some((name) => ` ${name}`.includes(` ${asked}`))) return 'start'
  return words.every((word) => called.some((name) => name.includes(word))) ? 'part' : undefined
}
