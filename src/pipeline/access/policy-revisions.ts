import type { MonitorAccessPolicy } from '#kinds'
import type { Clock } from '#model'
import type { Logger } from '#runtime'
import { compilePolicy } from './compile.ts'
import { policyDocument } from './document.ts'
import type { Policy } from './policy-resource.ts'
import type { InForce } from './policy-status.ts'
import type { Compilation } from './types.ts'

interface Compiled {
  readonly uid: string | undefined
  readonly generation: number | undefined
  readonly compilation: Compilation
}

/** Which revision of each policy counts: the present one, or where that has faults the one before it. By `<namespace>/<name>`. */
export class PolicyRevisions {
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #compiled = new Map<string, Compiled>()
  readonly #inForce = new Map<string, InForce>()

  constructor(clock: Clock, logger: Logger) {
    this.#clock = clock
    this.#logger = logger
  }

  /** What was in force of this very object, as far as we know. */
  earlier(key: string, { metadata: { uid } }: Policy): InForce | undefined {
    const known = this.#inForce.get(key)
    // Another object of the same name is another policy.
    return known?.uid === uid ? known : undefined
  }

  /** What the store should hold of the policy now. */
  wanted(key: string, policy: Policy): InForce | undefined {
    const { generation, uid } = policy.metadata
    const { document } = this.compile(key, policy)
    if (document) return { document, generation, uid }
    return this.earlier(key, policy) ?? this.#closed(key, policy)
  }

  /**
   * A faulty revision whose predecessor is lost: something was in force, and nobody knows what it said. An Allow grants
   * nothing then; a Deny denies all that it could mean, which is how a store reads its faults.
   */
  #closed(key: string, policy: Policy): InForce | undefined {
    const { metadata, status } = policy
    const spec = policy.spec as Partial<MonitorAccessPolicy['spec']> | undefined // it is faulty
    if (status?.hash === undefined || spec?.access?.effect !== 'Deny') return undefined
    try {
      const document = policyDocument(policy, this.#clock.now())
      return { document, generation: metadata.generation, uid: metadata.uid, isClosed: true }
    } catch (error) {
      // Only where the API server does not keep to our schema.
      this.#logger.error({ policy: key, err: error }, 'a Deny was in force, is lost, and what replaces it has no shape')
      return undefined
    }
  }

  /** Whether `compile` has nothing to do. */
  isCompiled(key: string, { metadata: { uid, generation } }: Policy): boolean {
    const known = this.#compiled.get(key)
    return known !== undefined && known.uid === uid && known.generation === generation && generation !== undefined
  }

  /** What the present revision of the object says; done once per revision. */
  compile(key: string, policy: Policy): Compilation {
    const known = this.#compiled.get(key)
    if (known && this.isCompiled(key, policy)) return known.compilation
    const { uid, generation } = policy.metadata
    const fresh = compilePolicy(policy, { now: this.#clock.now() })
    const { hash, compiledAt } = policy.status ?? {}
    // The same as before a restart: it came into force then.
    const isKnown = fresh.document && fresh.document.hash === hash && compiledAt !== undefined
    const compilation = isKnown ? { ...fresh, document: { ...fresh.document, compiled_at: compiledAt } } : fresh
    this.#compiled.set(key, { uid, generation, compilation })
    return compilation
  }

  /** The store took it, or holds it from an earlier life; undefined: it holds nothing of the policy. */
  nowInForce(key: string, inForce: InForce | undefined): void {
    if (inForce) this.#inForce.set(key, inForce)
    else this.#inForce.delete(key)
  }

  keys(): readonly string[] {
    return [...new Set([...this.#compiled.keys(), ...this.#inForce.keys()])]
  }

  forget(key: string): void {
    this.#compiled.delete(key)
    this.#inForce.delete(key)
  }
}
