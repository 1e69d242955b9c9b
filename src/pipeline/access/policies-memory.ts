import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { documentText } from '#model'
import { Listeners } from '#runtime'
import { readStoredPolicy } from './document.ts'
import { PoliciesUnavailableError } from './errors.ts'
import { keyOf, mergedStatus } from './redis-layout.ts'
import type { PolicyDocument, PolicyGeneration, PolicySource, PolicyWriter, StoredPolicy } from './types.ts'

type Status = Readonly<Record<string, unknown>>

/**
 * The policies of a hub that is one process: written by its reconciler, read by its API, gone with it.
 *
 *   loading ──first resync──▶ ready        loading: nobody is answered, as not yet knowing a Deny must not open a door
 */
export class MemoryPolicies implements PolicySource, PolicyWriter {
  /** so that a generation of a former process is never taken for one of ours */
  readonly #origin = randomBytes(6).toString('hex')
  readonly #policies = new Map<string, StoredPolicy>()
  readonly #statuses = new Map<string, Status>()
  readonly #listeners = new Listeners()
  #count = 0
  #isReady = false
  /** made when first asked for after a change */
  #generation: PolicyGeneration | undefined

  current(signal?: AbortSignal): Promise<PolicyGeneration> {
    return new Promise((resolve) => {
      signal?.throwIfAborted()
      resolve(this.#read())
    })
  }

  /** Memory is always verified: the age plays no part. */
  latest(_maxAgeMs: number): PolicyGeneration {
    return this.#read()
  }

  onChange(listener: () => void): () => void {
    return this.#listeners.add(listener)
  }

  put(document: PolicyDocument, status: Status): Promise<void> {
    const key = keyOf(document)
    this.#statuses.set(key, mergedStatus({}, status))
    if (this.#set(document)) this.#changed()
    return Promise.resolve()
  }

  remove(key: string): Promise<void> {
    this.#statuses.delete(key)
    if (this.#policies.delete(key)) this.#changed()
    return Promise.resolve()
  }

  putStatus(key: string, status: Status): Promise<void> {
    if (this.#policies.has(key)) this.#statuses.set(key, mergedStatus(this.#statuses.get(key) ?? {}, status))
    return Promise.resolve()
  }

  resync(
    policies: readonly { readonly document: PolicyDocument; readonly status: Status }[],
  ): Promise<readonly string[]> {
    const mended: string[] = []
    const wanted = new Set(policies.map(({ document }) => keyOf(document)))
    for (const key of [...this.#policies.keys()]) {
      if (wanted.has(key)) continue
      this.#policies.delete(key)
      this.#statuses.delete(key)
      mended.push(key)
    }
    for (const { document, status } of policies) {
      this.#statuses.set(keyOf(document), mergedStatus({}, status))
      if (this.#set(document)) mended.push(keyOf(document))
    }
    const begins = !this.#isReady
    this.#isReady = true
    if (begins || mended.length > 0) this.#changed()
    return Promise.resolve(mended.sort())
  }

  stored(key: string): Promise<PolicyDocument | undefined> {
    return Promise.resolve(this.#policies.get(key)?.document)
  }

  /** the small document beside a policy; undefined where there is none */
  statusOf(key: string): Status | undefined {
    return this.#statuses.get(key)
  }

  #set(document: PolicyDocument): boolean {
    const key = keyOf(document)
    // Read as from any other store: a fault counts against it here too.
    const policy = readStoredPolicy(key, documentText(document))
    if (isDeepStrictEqual(this.#policies.get(key), policy)) return false
    this.#policies.set(key, policy)
    return true
  }

  #changed(): void {
    this.#count++
    this.#generation = undefined
    this.#listeners.tell()
  }

  #read(): PolicyGeneration {
    if (!this.#isReady) throw new PoliciesUnavailableError('they are still being loaded')
    this.#generation ??= {
      generation: `${this.#origin}-${this.#count}`,
      policies: [...this.#policies.values()].sort((a, b) => (a.key < b.key ? -1 : 1)),
    }
    return this.#generation
  }
}
