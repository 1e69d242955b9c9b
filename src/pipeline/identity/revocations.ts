import type { Clock } from '#model'
import { IdentityUnavailableError } from './errors.ts'
import type { RevocationStore, SharedMarks } from './types.ts'

const maxRemembered = 100_000

/** Sign-outs of this process alone: for a single replica. When full, the entry that would be forgotten first goes first. */
export function localRevocations(clock: Clock): RevocationStore {
  const ended = new Map<string, number>()
  const listeners = new Set<(id: string) => void>()
  return {
    async revoke(id, until) {
      const now = clock.now()
      if (until <= now) return
      if (ended.size >= maxRemembered) makeRoom(ended, now)
      ended.set(id, until)
      for (const listener of [...listeners]) listener(id)
    },
    async isRevoked(id) {
      const until = ended.get(id)
      if (until === undefined) return false
      if (until > clock.now()) return true
      ended.delete(id)
      return false
    },
    onRevoked: (listener) => subscribe(listeners, listener),
  }
}

function makeRoom(ended: Map<string, number>, now: number): void {
  for (const [id, until] of ended) if (until <= now) ended.delete(id)
  if (ended.size < maxRemembered) return
  const soonest = [...ended].sort(([, a], [, b]) => a - b).slice(0, maxRemembered / 10)
  for (const [id] of soonest) ended.delete(id)
}

/** Sign-outs that count on every replica: kept and told through a shared store. Its errors pass: the request is then refused. */
export function revocationsOver(marks: SharedMarks, clock: Clock): RevocationStore {
  return {
    async revoke(id, until) {
      const ttlMs = until - clock.now()
      if (ttlMs <= 0) return
      await marks.set(keyOf(id), Math.ceil(ttlMs))
      await marks.publish(id)
    },
    isRevoked: (id) => marks.has(keyOf(id)),
    onRevoked: (listener) => marks.subscribe(listener),
  }
}

/** A store that does not answer lets nobody in on a guess. */
export function guarded(store: RevocationStore): RevocationStore {
  const asked = async <T>(question: Promise<T>): Promise<T> => {
    try {
      return await question
    } catch (error) {
      throw new IdentityUnavailableError('whether you signed out cannot be found out now: try again shortly', {
        cause: error,
      })
    }
  }
  return {
    revoke: (id, until) => asked(store.revoke(id, until)),
    isRevoked: (id) => asked(store.isRevoked(id)),
    onRevoked: (listener) => store.onRevoked(listener),
  }
}

const keyOf = (id: string): string => `revoked:${id}`

function subscribe<T>(listeners: Set<(value: T) => void>, listener: (value: T) => void): () => void {
  // Wrapped, so that the same function may listen twice and leave once.
  const own = (value: T): void => listener(value)
  listeners.add(own)
  return () => listeners.delete(own)
}
