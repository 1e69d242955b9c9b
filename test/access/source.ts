import {
  compilePolicy,
  PoliciesUnavailableError,
  type PolicyGeneration,
  type PolicyObject,
  type PolicySource,
  readStoredPolicy,
  type StoredPolicy,
} from '#access'
import { documentOf } from './document.ts'
import { isRefused } from './oracle.ts'
import type { WrittenPolicy } from './world.ts'

/** A store whose generation is what a test says; it can be lost. */
export class GivenPolicies implements PolicySource {
  readonly #listeners = new Set<() => void>()
  #count = 0
  #generation: PolicyGeneration = { generation: '0', policies: [] }
  #lost = false

  set(policies: readonly StoredPolicy[]): void {
    this.#lost = false
    this.#count += 1
    this.#generation = { generation: String(this.#count), policies }
    for (const listener of [...this.#listeners]) listener()
  }

  lose(): void {
    this.#lost = true
    for (const listener of [...this.#listeners]) listener()
  }

  async current(): Promise<PolicyGeneration> {
    return this.latest()
  }

  latest(): PolicyGeneration {
    if (this.#lost) throw new PoliciesUnavailableError('the test says so')
    return this.#generation
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}

export class CompileDifference extends Error {}

/**
 * What the store holds of these: compiled and written as the reconciler does it, or by hand past every check.
 * @throws CompileDifference where the compiler takes what it must refuse, refuses what it must take, or writes another document
 */
export function stored(policies: readonly WrittenPolicy[], now: number): readonly StoredPolicy[] {
  const byKey = new Map<string, StoredPolicy>()
  for (const policy of policies) {
    const text = policy.byHand ? JSON.stringify(documentOf(policy)) : compiledText(policy, now)
    const key = `${policy.namespace}/${policy.name}`
    if (text !== undefined) byKey.set(key, readStoredPolicy(key, text))
  }
  return [...byKey.values()].sort((left, right) => (left.key < right.key ? -1 : 1))
}

function compiledText(policy: WrittenPolicy, now: number): string | undefined {
  const { namespace, name, spec } = policy
  const object = { metadata: { namespace, name }, spec } as PolicyObject // as somebody wrote it into a file
  const { document, findings } = compilePolicy(object, { now })
  const errors = findings.filter(({ severity }) => severity === 'error').map(({ code, path }) => `${code} at ${path}`)
  if (isRefused(policy) !== (document === undefined))
    throw new CompileDifference(`${name}: the compiler ${document ? 'takes it' : `refuses it (${errors})`}`)
  if (!document) return undefined
  // In a Deny, whose filters hide nothing by themselves, brackets are taken and written as they are.
  const ours = JSON.stringify(plainly({ ...document, hash: '', compiled_at: '' })).replaceAll(/\\\\([()|])/g, '$1')
  const expected = JSON.stringify(plainly({ ...documentOf(policy), hash: '', compiled_at: '' }))
  if (ours !== expected) throw new CompileDifference(`${name}: the document is\n${ours}\nand not\n${expected}`)
  return JSON.stringify(document)
}

/** Sorted, and without what is empty: null, absent and empty are alike (section 4). */
export function plainly(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plainly)
  if (typeof value !== 'object' || value === null) return value
  return Object.entries(value)
    .map(([key, one]) => [key, plainly(one)] as const)
    .filter(([, one]) => one !== null && one !== undefined && !(Array.isArray(one) && one.length === 0))
    .sort(([left], [right]) => (left < right ? -1 : 1))
}
