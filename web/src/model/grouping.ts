import { nearest } from '../contract.ts'

/** By what clusters are grouped besides a label, which is `label:KEY`. */
export const groupings = ['health', 'version', 'distribution', 'platform'] as const

/** What to write instead of a grouping that is none; undefined: it is one, or there is none. */
export function groupingFault(
  grouping: string,
  labels: readonly string[],
): { readonly text: string; readonly meant: string | null } | undefined {
  if (grouping === '' || groupings.some((one) => one === grouping)) return undefined
  const key = /^label:(.+)$/.exec(grouping)?.[1]
  if (key !== undefined && (labels.includes(key) || labels.length === 0)) return undefined
  const known = [...groupings, ...labels]
  const word = key ?? grouping
  const near = known.includes(word) ? word : nearest(word, known)
  const meant = near === undefined ? null : labels.includes(near) ? `label:${near}` : near
  return { text: key === undefined ? `${word} is nothing to group by` : `${key} is no label of these clusters`, meant }
}
