import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Clock } from '#model'
import { AdministratorAccessView, PolicyAccessView, SharedAccessView } from './access-view.ts'
import { PoliciesUnavailableError } from './errors.ts'
import { explain, ownPolicies } from './explain.ts'
import { type PreparedGeneration, type PreparedPolicy, prepareGeneration } from './prepare.ts'
import { hashKey } from './redis-layout.ts'
import { principalKey, skipNow, stableSpan, touching } from './touching.ts'
import type {
  Access,
  AccessView,
  Explanation,
  OwnPolicy,
  PolicyGeneration,
  PolicySource,
  Principal,
  Question,
  Semantics,
  StoredPolicy,
} from './types.ts'

/** Who sees the whole fleet, besides the local administrator: names compared exactly; an empty name is nobody's. */
export interface Administrators {
  readonly users: readonly string[]
  readonly groups: readonly string[]
}

/** What access decisions are made from. */
export interface AccessOptions {
  readonly source: PolicySource
  readonly semantics: Semantics
  readonly administrators: Administrators
  readonly clock: Clock
  /** how many principals, and lists of policies, are remembered; room for all is taken at once */
  readonly remembered?: { readonly principals: number; readonly shared: number }
}

/** Open streams go by what was verified within this time. */
const maxAgeMs = 5000
/** Principals of one generation whose policies are remembered, and lists of policies whose decisions are. */
const rememberedOfStore = { principals: 10_000, shared: 500 }
/** Policies that are tried, or made for somebody, are asked about a few. */
const rememberedOfFew = { principals: 16, shared: 16 }

/** Opens the access decision over a source of policies. Holds no connection of its own: the source is closed by who opened it. */
export function openAccess(options: AccessOptions): Access {
  return new PolicyAccess(options)
}

/** All that is derived from one generation. */
interface Epoch {
  readonly prepared: PreparedGeneration
  readonly principals: LRUCache<string, TimedView>
}

/** What a principal's policies come to between two turns of the clock. */
interface TimedView {
  readonly from: number
  readonly accessView: AccessView
}

class PolicyAccess implements Access {
  readonly #source: PolicySource
  readonly #semantics: Semantics
  readonly #clock: Clock
  readonly #administrators: Administrators
  readonly #users: ReadonlySet<string>
  readonly #groups: ReadonlySet<string>
  readonly #remembered: { readonly principals: number; readonly shared: number }
  readonly #shared: LRUCache<string, SharedAccessView>
  #epoch: Epoch | undefined

  constructor({ source, semantics, administrators, clock, remembered = rememberedOfStore }: AccessOptions) {
    this.#remembered = remembered
    this.#shared = new LRUCache({ max: remembered.shared })
    this.#source = source
    this.#semantics = semantics
    this.#clock = clock
    this.#administrators = administrators
    this.#users = new Set(administrators.users.filter(Boolean))
    this.#groups = new Set(administrators.groups.filter(Boolean))
  }

  async viewOf(principal: Principal, signal?: AbortSignal): Promise<AccessView> {
    if (this.isAdministrator(principal)) return this.#administratorAccessView()
    return this.#accessViewIn(await this.#source.current(signal), principal)
  }

  viewNow(principal: Principal): AccessView {
    if (this.isAdministrator(principal)) return this.#administratorAccessView()
    return this.#accessViewIn(this.#source.latest(maxAgeMs), principal)
  }

  async explain(principal: Principal, question: Question): Promise<Explanation> {
    const generation = await this.#source.current()
    const { prepared } = this.#epochOf(generation)
    return explain({
      principal,
      question,
      semantics: this.#semantics,
      generation: generation.generation,
      now: this.#clock.now(),
      policies: this.isAdministrator(principal) ? null : this.#touching(prepared, principal),
    })
  }

  async policiesOf(principal: Principal): Promise<readonly OwnPolicy[]> {
    const { prepared } = this.#epochOf(await this.#source.current())
    const policies = this.#touching(prepared, principal)
    return ownPolicies(policies, principal, this.#semantics, this.#clock.now())
  }

  policies(): Promise<PolicyGeneration> {
    return this.#source.current()
  }

  /** Whoever is looked at by "view as" is no administrator through the eyes that look. */
  isAdministrator({ username, groups, method, actor }: Principal): boolean {
    const signedInAsOne = actor === undefined && (method === 'local-administrator' || method === 'password')
    return signedInAsOne || this.#users.has(username) || groups.some((group) => this.#groups.has(group))
  }

  withPolicies(policies: readonly StoredPolicy[]): Access {
    return new PolicyAccess({
      source: fixedSource(policies),
      semantics: this.#semantics,
      administrators: this.#administrators,
      clock: this.#clock,
      remembered: rememberedOfFew,
    })
  }

  onChange(listener: () => void): () => void {
    return this.#source.onChange(listener)
  }

  /** No policy is about administrators: they are let in to mend what nobody else can get past. */
  #administratorAccessView(): AccessView {
    return new AdministratorAccessView(this.#epoch?.prepared.generation ?? '')
  }

  #epochOf(generation: PolicyGeneration): Epoch {
    if (this.#epoch?.prepared.source === generation) return this.#epoch
    const epoch: Epoch = {
      prepared: prepareGeneration(generation, this.#semantics),
      principals: new LRUCache({ max: this.#remembered.principals }),
    }
    this.#epoch = epoch
    return epoch
  }

  #touching(prepared: PreparedGeneration, principal: Principal): readonly PreparedPolicy[] {
    // The original passed over what it could not read (RBAC-Q37); it may have been a Deny, and about anybody: in no semantics.
    const [key] = prepared.unreadable
    if (key !== undefined) {
      const next = `apply it again, so that the manager writes it anew, or delete ${hashKey(key)} in Redis`
      throw new PoliciesUnavailableError(
        `the stored policy ${key} cannot be read, and whom it is for is not known: ${next}`,
      )
    }
    return touching(prepared, principal, this.#semantics)
  }

  #accessViewIn(generation: PolicyGeneration, principal: Principal): AccessView {
    const { prepared, principals } = this.#epochOf(generation)
    const now = this.#clock.now()
    const key = principalKey(principal, this.#semantics)
    const known = principals.get(key)
    // Clocks are set back, too: what is remembered counts within its span only.
    if (known && now >= known.from && now < known.accessView.validUntil) return known.accessView
    const policies = this.#touching(prepared, principal)
    const { from, until } = stableSpan(policies, now)
    const effective = policies.filter((policy) => skipNow(policy, now) === null)
    const accessView = new PolicyAccessView(this.#sharedOf(effective), effective, prepared.generation, until)
    principals.set(key, { from, accessView })
    return accessView
  }

  #sharedOf(policies: readonly PreparedPolicy[]): SharedAccessView {
    const fingerprint = fingerprintOf(policies, this.#semantics)
    const known = this.#shared.get(fingerprint)
    if (known) return known
    const made = new SharedAccessView(fingerprint, policies, this.#semantics)
    this.#shared.set(fingerprint, made)
    return made
  }
}

function fingerprintOf(policies: readonly PreparedPolicy[], semantics: Semantics): string {
  const hash = createHash('sha256').update(semantics)
  for (const policy of policies) hash.update('\n').update(policy.content())
  return hash.digest('base64url').slice(0, 32)
}

function fixedSource(policies: readonly StoredPolicy[]): PolicySource {
  const sorted = policies.toSorted((a, b) => (a.key < b.key ? -1 : 1))
  const content = sorted.map(({ key, document, faults }) => JSON.stringify([key, document, faults]))
  const hash = createHash('sha256').update(content.join('\n')).digest('base64url')
  const generation: PolicyGeneration = { generation: `dry-${hash.slice(0, 16)}`, policies: sorted }
  return {
    current: (signal) => {
      signal?.throwIfAborted()
      return Promise.resolve(generation)
    },
    latest: () => generation,
    onChange: () => () => undefined,
  }
}
