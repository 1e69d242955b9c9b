/** Words as somebody meant them: small, and without what stands between their letters. */
const bare = (word: string): string => word.toLowerCase().replace(/[^a-z0-9\u0080-\uffff]+/g, '')

/** So many slips are forgiven: a letter wrong, missing, doubled, or two swapped. Shorter words are too alike to guess. */
const slipsOf = (length: number): number => (length < 3 ? 0 : length < 8 ? 1 : 2)

/** Of three letters, another one is another word (`cpu`, `gpu`): only swapped, missing and doubled ones are slips. */
const isOtherWord = (a: string, b: string): boolean =>
  a.length === 3 && b.length === 3 && [...a].sort().join('') !== [...b].sort().join('')

/** At most as many slips apart as their length forgives. Bounded: long words are not compared. */
export function isNear(word: string, other: string): boolean {
  const [a, b] = [bare(word), bare(other)]
  const slips = slipsOf(Math.min(a.length, b.length))
  if (a === '' || b === '' || isOtherWord(a, b)) return false
  return a === b || (slips > 0 && a.length <= 64 && slipsBetween(a, b, slips) <= slips)
}

/** Its digits: a number is never a slip of another, `worker-6` is not `worker-5`. */
const digitsOf = (word: string): string => word.replace(/[^0-9]/g, '')

/** Near to a name in the text, or to as many of its hyphened parts as the word has: `prdo-east` in `eu-prod-east`. */
export function isNearIn(word: string, text: string): boolean {
  const isMeant = (name: string) => digitsOf(word) === digitsOf(name) && isNear(word, name)
  const count = word.split(/[^a-z0-9]+/i).filter(Boolean).length
  return text.split(/\s+/).some((name) => {
    if (isMeant(name)) return true
    const parts = name.split(/[^a-z0-9]+/i).filter(Boolean)
    return parts.some((_, at) => isMeant(parts.slice(at, at + count).join('')))
  })
}

/** Each hyphened part of the word is one of a name in the text: `worker-6` in `worker-us-west-2a-6`. */
export function hasPartsOf(word: string, text: string): boolean {
  const wanted = word.split(/[^a-z0-9]+/i).filter(Boolean)
  return text.split(/\s+/).some((name) => {
    const parts = new Set(name.split(/[^a-z0-9]+/i))
    return wanted.length > 0 && wanted.every((part) => parts.has(part))
  })
}

/** The candidate that was probably meant; undefined: none is near. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  let best: { candidate: string; slips: number } | undefined
  for (const candidate of candidates) {
    if (!isNear(word, candidate)) continue
    const slips = slipsBetween(bare(word), bare(candidate), 2)
    if (!best || slips < best.slips || (slips === best.slips && candidate < best.candidate)) best = { candidate, slips }
  }
  return best?.candidate
}

/** Optimal string alignment distance; any number above `most` where it is above that. */
export function slipsBetween(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) > most) return most + 1
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const wrong = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      let least = Math.min(wrong, (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, (before[j - 2] ?? 0) + 1)
      row.push(least)
    }
    if (Math.min(...row) > most) return most + 1
    before = last
    last = row
  }
  return last[b.length] ?? 0
}
