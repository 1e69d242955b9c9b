import type { ClusterView, SearchHit } from '../contract.ts'

/** Clusters by what this tab already knows, so that the first letters have an answer without the hub. */
export function localHits(clusters: Iterable<ClusterView>, text: string, limit: number): SearchHit[] {
  const words = wordsOf(text)
  const ranked: { hit: SearchHit; rank: number }[] = []
  for (const { name, displayName, labels, health } of clusters) {
    const called = `${name} ${displayName}`.toLowerCase()
    const known = `${called} ${Object.values(labels).join(' ').toLowerCase()}`
    if (!words.every((word) => known.includes(word) || isNear(word, called))) continue
    const rank = words.every((word) => name.toLowerCase().startsWith(word))
      ? 0
      : words.every((word) => called.includes(word))
        ? 1
        : 2
    ranked.push({
      hit: { kind: 'cluster', cluster: name, name, detail: displayName === name ? '' : displayName, health },
      rank,
    })
  }
  ranked.sort((a, b) => a.rank - b.rank || (a.hit.name < b.hit.name ? -1 : 1))
  return ranked.slice(0, limit).map(({ hit }) => hit)
}

/** What the hub found last stays as far as it still fits, so that the list does not blink while one types. */
export function mergeHits(near: readonly SearchHit[], far: readonly SearchHit[], text: string): SearchHit[] {
  const words = wordsOf(text)
  const seen = new Set<string>()
  const fitting = far.filter(({ kind, cluster, name, detail, type = '', namespace = '' }) => {
    const known = `${kind} ${cluster} ${name} ${detail} ${type} ${namespace}`.toLowerCase()
    return words.every((word) => known.includes(word))
  })
  return [...near, ...fitting].filter((hit) => {
    const key = hitKey(hit)
    return !seen.has(key) && seen.add(key)
  })
}

/** Rows of two types may have the same name. */
export const hitKey = ({ kind, cluster, name, type = '', namespace = '' }: SearchHit): string =>
  [kind, cluster, type, namespace, name].join(' ')

const wordsOf = (text: string): string[] =>
  text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')

/** One slip of the finger is forgiven from five letters on: a letter wrong, missing, doubled or swapped. */
export function isNear(word: string, text: string): boolean {
  if (word.length < 5) return false
  return text.split(/[^a-z0-9]+/).some((part) => isOneSlip(word, part))
}

function isOneSlip(a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > 1) return false
  let [start, endA, endB] = [0, a.length, b.length]
  while (start < endA && start < endB && a[start] === b[start]) start++
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) {
    endA--
    endB--
  }
  const [restA, restB] = [a.slice(start, endA), b.slice(start, endB)]
  if (restA.length <= 1 && restB.length <= 1) return true
  return restA.length === 2 && restB.length === 2 && restA[0] === restB[1] && restA[1] === restB[0]
}
