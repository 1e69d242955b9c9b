interface Version {
  readonly numbers: readonly number[]
  readonly pre: string
}

/** Reads `v1.29.4`, `4.15`, `4.16.0-rc.2`, `v1.29.4+k3s1`; undefined where no number leads. */
function parseVersion(text: string): Version | undefined {
  const match = /^v?(\d+(?:\.\d+)*)(?:-([0-9A-Za-z.-]+))?/.exec(text.trim())
  if (!match?.[1]) return undefined
  return { numbers: match[1].split('.').map(Number), pre: match[2] ?? '' }
}

/**
 * Compares as far as `wanted` goes: 4.15.3 equals a wanted 4.15. A pre-release comes before its release.
 * @returns undefined where one of them is no version.
 */
export function compareVersions(version: string, wanted: string): number | undefined {
  const [a, b] = [parseVersion(version), parseVersion(wanted)]
  if (!a || !b) return undefined
  for (const [index, number] of b.numbers.entries()) {
    const difference = (a.numbers[index] ?? 0) - number
    if (difference !== 0) return Math.sign(difference)
  }
  if (b.numbers.length < 3 || a.pre === b.pre) return 0
  if (a.pre === '') return 1
  if (b.pre === '') return -1
  return a.pre < b.pre ? -1 : 1
}

/** `v1.29.4+k3s1` and `4.15.3` as what people call a release: `1.29`, `4.15`. */
export function releaseOf(version: string): string {
  const numbers = parseVersion(version)?.numbers
  return numbers ? numbers.slice(0, 2).join('.') : version
}
