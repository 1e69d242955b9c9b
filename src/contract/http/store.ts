/** Whether the hub knows its fleet; `available` with a reason: it answers, and hears nothing new, so that what is shown may be old. */
export interface StoreView {
  state: 'available' | 'loading' | 'unavailable'
  /** ms since the Unix epoch; null: it is as it should be, or that is not known */
  since: number | null
  reason: string
}

/** The hub knows its fleet, and hears what is new. */
export const isWhole = ({ state, reason }: StoreView): boolean => state === 'available' && reason === ''

/** What is wrong in a few words; of one that is not whole. */
export function storeTitle({ state, reason }: StoreView): string {
  if (state === 'available') return 'The hub does not hear everything.'
  if (state !== 'loading') return 'The hub has lost its store.'
  return reason === '' ? 'The hub is loading its state.' : 'The hub has nothing to show yet.'
}

/** Why, as a sentence; '' where that is not said. */
export const storeCause = ({ reason }: StoreView): string =>
  reason === '' ? '' : `${reason.charAt(0).toUpperCase()}${reason.slice(1)}${/[.!?]$/.test(reason) ? '' : '.'}`

/** The same with cause and time, in one line; undefined where it is whole. */
export function storeText(store: StoreView): string | undefined {
  if (isWhole(store)) return undefined
  const { since } = store
  const time = since === null ? '' : `Since ${new Date(since).toISOString().replace(/\.\d+Z$/, 'Z')}.`
  return [storeTitle(store), storeCause(store), time, 'What is shown may be old.'].filter(Boolean).join(' ')
}

/** A text as the value of a header `Warning`, as an API of Kubernetes sends it (RFC 7234, 5.5). */
export const warningOf = (text: string): string => `299 - ${JSON.stringify(text.replace(/[^\x20-\x7e]/g, '?'))}`

/** The texts in such a header. */
export const warningsIn = (header: string | null): readonly string[] =>
  [...(header ?? '').matchAll(/\b299 \S+ "((?:[^"\\]|\\.)*)"/g)].map(([, text = '']) => text.replace(/\\(.)/g, '$1'))
