import type { Behind, DecideMember, LackedRights, MemberFacts, MemberRequest } from '#model'
import type { ServedMembers } from '../types.ts'

/** A member that lives and is monitored by our agent. */
export const aMember = (name: string, over: Partial<MemberFacts> = {}): MemberFacts => ({
  name,
  ...{ state: 'available', accepted: true, joined: true, available: 'True', reason: '', message: '' },
  ...{ since: 1, createdAt: 1, sets: ['default', 'global'], transport: 'stream', kubernetesVersion: 'v1.33.1' },
  ...{ clockSynced: true, taints: [], claims: {}, labels: {}, capacity: {}, allocatable: {} },
  ...{ conditions: [], certificate: null },
  ...over,
})

/** Members and requests in memory, which a test changes. */
export class SomeMembers implements ServedMembers {
  isKnown = true
  behind: Behind | undefined
  #version = 1
  #members: readonly MemberFacts[]
  #requests: readonly MemberRequest[]
  #sets: readonly string[] = []
  readonly decide: DecideMember
  /** nobody but administrators has any right, unless a test says otherwise */
  administratorsDecide = true
  lackedRights: LackedRights = () => Promise.resolve(['every right'])

  constructor(
    members: readonly MemberFacts[] = [],
    requests: readonly MemberRequest[] = [],
    decide: DecideMember = () => Promise.resolve([]),
  ) {
    this.#members = members
    this.#requests = requests
    this.decide = decide
  }

  set(members: readonly MemberFacts[], requests: readonly MemberRequest[] = this.#requests): void {
    this.#members = members
    this.#requests = requests
    this.#version++
  }

  /** Why what it tells is of then; undefined: it is of now. */
  say(behind: Behind | undefined): void {
    this.behind = behind
    this.#version++
  }

  /** Sets that no member is in. */
  setsBesides(names: readonly string[]): void {
    this.#sets = names
    this.#version++
  }

  get members() {
    return {
      members: () => this.#members.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
      member: (name: string) => this.#members.find((one) => one.name === name),
      sets: () => [...new Set([...this.#sets, ...this.#members.flatMap(({ sets }) => sets)])].sort(),
      version: () => this.#version,
      isKnown: () => this.isKnown,
      behind: () => this.behind,
    }
  }

  get requests() {
    return {
      requests: () => this.#requests,
      version: () => this.#version,
      isKnown: () => this.isKnown,
      behind: () => this.behind,
    }
  }
}
