import { type Clock, systemClock } from '#model'
import { compilePolicy } from '../compile.ts'
import { readStoredPolicy } from '../document.ts'
import { PoliciesUnavailableError } from '../errors.ts'
import { openAccess } from '../open-access.ts'
import type {
  Access,
  PolicyDocument,
  PolicyGeneration,
  PolicyObject,
  PolicySource,
  Semantics,
  StoredPolicy,
} from '../types.ts'

export interface AccessOfOptions {
  readonly semantics?: Semantics
  readonly administrators?: { readonly users?: readonly string[]; readonly groups?: readonly string[] }
  readonly clock?: Clock
}

/** An Access whose policies a test changes and whose source it can lose. */
export interface TestAccess extends Access {
  readonly source: TestPolicies
  /** puts these in the place of all others */
  set(policies: readonly PolicyObject[]): void
}

/** An Access over these objects, compiled as the reconciler does. @throws Error with the findings where one does not compile */
export function accessOf(policies: readonly PolicyObject[], options: AccessOfOptions = {}): TestAccess {
  const { semantics = 'strict', administrators = {}, clock = systemClock } = options
  const source = new TestPolicies()
  const set = (objects: readonly PolicyObject[]) => source.set(objects.map((object) => storedOf(object, clock.now())))
  set(policies)
  const { users = [], groups = [] } = administrators
  const access = openAccess({ source, semantics, administrators: { users, groups }, clock })
  return {
    source,
    set,
    viewOf: (principal, signal) => access.viewOf(principal, signal),
    viewNow: (principal) => access.viewNow(principal),
    explain: (principal, question) => access.explain(principal, question),
    policiesOf: (principal) => access.policiesOf(principal),
    policies: () => access.policies(),
    isAdministrator: (principal) => access.isAdministrator(principal),
    withPolicies: (stored) => access.withPolicies(stored),
    onChange: (listener) => access.onChange(listener),
  }
}

/** The object as a store would give it back. */
export function storedOf(object: PolicyObject, now = Date.now()): StoredPolicy {
  const { document, findings } = compilePolicy(object, { now })
  if (!document) throw new Error(`the policy does not compile: ${JSON.stringify(findings)}`)
  return storedDocument(document)
}

/** Any document, through the same text as in a store. */
export function storedDocument(document: PolicyDocument): StoredPolicy {
  return readStoredPolicy(`${document.namespace}/${document.policy_name}`, JSON.stringify(document))
}

export class TestPolicies implements PolicySource {
  readonly #listeners = new Set<() => void>()
  #count = 0
  #isLost = false
  #generation: PolicyGeneration = { generation: 'test-0', policies: [] }

  set(policies: readonly StoredPolicy[]): void {
    this.#count++
    const sorted = policies.toSorted((a, b) => (a.key < b.key ? -1 : 1))
    this.#generation = { generation: `test-${this.#count}`, policies: sorted }
    this.#tell()
  }

  /** Until `find`, nobody can be answered. */
  lose(): void {
    this.#isLost = true
    this.#tell()
  }

  find(): void {
    this.#isLost = false
    this.#tell()
  }

  current(): Promise<PolicyGeneration> {
    return new Promise((resolve) => resolve(this.latest()))
  }

  latest(): PolicyGeneration {
    if (this.#isLost) throw new PoliciesUnavailableError('the test took them away')
    return this.#generation
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener()
  }
}
