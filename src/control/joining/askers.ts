import { ASKED_ANNOTATION } from '#kinds'
import type { KubeObject } from '#kube'

/** A machine that waits for somebody to accept it, as the desk saw it. */
export interface Asker {
  /** SHA-256 of its public key, hex */
  readonly key: string
  readonly address: string
  /** of its agent */
  readonly version: string
}

/** As many as requests of one cluster may wait. */
const MAX_ASKERS = 10

/*
 * Where those who ask come from stands on the ManagedCluster they ask to be, which no other member may read: every member may read
 * all certificate requests. Admission keeps it from everybody who may not accept the cluster. docs/adr/0044
 */
export { ASKED_ANNOTATION }

/** Newest first; [] where nobody waits, or somebody wrote anything else there. */
export function askersOf(member: KubeObject | undefined): readonly Asker[] {
  const text = member?.metadata.annotations?.[ASKED_ANNOTATION]
  if (text === undefined) return []
  try {
    const read: unknown = JSON.parse(text)
    return Array.isArray(read) ? read.filter(isAsker).slice(0, MAX_ASKERS) : []
  } catch {
    return [] // an administrator wrote it: who asks is shown without it
  }
}

function isAsker(value: unknown): value is Asker {
  const { key, address, version } = (value ?? {}) as Partial<Record<keyof Asker, unknown>>
  return [key, address, version].every((one) => typeof one === 'string')
}

/** The text with one more, or one that comes from elsewhere now. undefined: it says so already */
export function withAsker(member: KubeObject | undefined, { key, address, version }: Asker): string | undefined {
  const asker = { key, address: address.slice(0, 64), version: version.slice(0, 128) }
  const known = askersOf(member)
  const before = known.find((one) => one.key === key)
  if (before?.address === asker.address && before.version === asker.version) return undefined
  return JSON.stringify([asker, ...known.filter((one) => one !== before)].slice(0, MAX_ASKERS))
}

/** The text without one that waits no more; null: nobody is left. undefined: it is not there */
export function withoutAsker(member: KubeObject, key: string): string | null | undefined {
  const known = askersOf(member)
  const rest = known.filter((one) => one.key !== key)
  if (rest.length === known.length) return undefined
  return rest.length === 0 ? null : JSON.stringify(rest)
}
