import type { AccessView } from '#access'
import { type Clock, type MemberFacts, type MemberReader, type RowsState, Table } from '#model'
import { members as kind } from '#resources'
import type { StateReader } from '#state'
import type { FleetRows } from './fleet-rows.ts'
import { stateOfRows } from './snapshot-rows.ts'

interface MemberRowsOptions {
  readonly members: MemberReader
  readonly state: Pick<StateReader, 'cluster' | 'version'>
  readonly clock: Clock
}

/** Members: each is seen by who sees its cluster; one that has none yet, or none any more, by administrators. */
export class MemberRows implements FleetRows {
  readonly kind = kind
  readonly #options: MemberRowsOptions
  /** which clusters there are, and what policies select them by */
  #selected: { readonly by: string; readonly labels: readonly unknown[]; readonly version: number } = {
    by: '',
    labels: [],
    version: 0,
  }

  constructor(options: MemberRowsOptions) {
    this.#options = options
  }

  version(): string {
    const { members, state } = this.#options
    const by = `${members.version()} ${state.version()}`
    if (by !== this.#selected.by) {
      const labels = members.members().map(({ name }) => state.cluster(name)?.connection?.labels)
      const { labels: before, version } = this.#selected
      const isSame = labels.length === before.length && labels.every((one, i) => one === before[i])
      this.#selected = { by, labels, version: isSame ? version : version + 1 }
    }
    return `${members.version()}/${this.#selected.version}`
  }

  turnsAt(): number {
    return Number.POSITIVE_INFINITY
  }

  rows(accessView: AccessView): RowsState {
    const { members, clock } = this.#options
    const attemptedAt = clock.now()
    if (!members.isKnown()) {
      const message = "the hub's API did not tell its members yet"
      const read = { outcome: 'unreachable', code: 'members_unknown', message, attemptedAt, freshness: null } as const
      return stateOfRows(kind, read, { rows: Table.empty, aggregations: {} })
    }
    const seen = members.members().filter((member) => this.#isSeen(accessView, member))
    const freshness = { observedAt: attemptedAt, receivedAt: attemptedAt, source: 'pull' } as const
    const read = { outcome: 'complete', code: '', message: '', attemptedAt, freshness } as const
    return stateOfRows(kind, read, { rows: kind.tableOf(seen), aggregations: kind.count(seen) })
  }

  #isSeen(accessView: AccessView, { name }: MemberFacts): boolean {
    if (accessView.administrator) return true
    const cluster = this.#options.state.cluster(name)
    return cluster !== undefined && accessView.canSee(cluster)
  }
}
