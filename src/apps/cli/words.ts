/** Words of the command line that are known before anything else is loaded. */
import { nearest } from '#model'
import { kindWords } from './kind-words.gen.ts'

/** How `get` prints; `wide`: a table with every column there is. */
export const outputFormats = ['table', 'wide', 'json', 'yaml'] as const
export type OutputFormat = (typeof outputFormats)[number]

/** What `get` prints besides rows of a kind, by its plural, with its singular. */
export const nouns = {
  clusters: 'cluster',
  events: 'event',
  types: 'type',
  agents: 'agent',
} as const
export type Noun = keyof typeof nouns
export const nounNames = Object.keys(nouns) as readonly Noun[] // the keys of a record of every noun

/** A kind of row that the hub names: nodes, pods, or what a MetricSource declares. */
export interface OtherKind {
  readonly kind: string
}

/** Plurals, then singulars. */
export const nounWords: readonly string[] = [
  ...Object.keys({ ...nouns, ...kindWords }),
  ...Object.values({ ...nouns, ...kindWords }),
]

/** Singular or plural, in any case. */
export function nounOf(text: string): Noun | undefined {
  const asked = text.toLowerCase()
  return nounNames.find((noun) => noun === asked || nouns[noun] === asked)
}

/** The word that was most likely meant, or that begins so; undefined where none is near. */
export function wordMeant(text: string, words: readonly string[]): string | undefined {
  const asked = text.toLowerCase()
  return nearest(asked, words) ?? (asked.length > 1 ? words.find((word) => word.startsWith(asked)) : undefined)
}

/** Shells whose Tab key we can teach. */
export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]
