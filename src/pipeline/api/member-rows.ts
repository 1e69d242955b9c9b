import type { AccessView } from '#access'
import {
  type Behind,
  type Clock,
  type MemberFacts,
  type MemberReader,
  type MemberRequestReader,
  type RowsState,
  Table,
} from '#model'
import { type FleetKind, members as kind, memberRequests } from '#resources'
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
    return statedRows(
      kind,
      members.isKnown() ? members.members().filter((member) => this.#isSeen(accessView, member)) : undefined,
      clock.now(),
      members.behind(),
    )
  }

  #isSeen(accessView: AccessView, { name }: MemberFacts): boolean {
    if (accessView.administrator) return true
    const cluster = this.#options.state.cluster(name)
    return cluster !== undefined && accessView.canSee(cluster)
  }
}

/** Who asks to be a member is seen by those who may decide it: administrators. */
export class MemberRequestRows implements FleetRows {
  readonly kind = memberRequests
  readonly #requests: MemberRequestReader
  readonly #clock: Clock

  constructor(requests: MemberRequestReader, clock: Clock) {
    this.#requests = requests
    this.#clock = clock
  }

  version(): string {
    return String(this.#requests.version())
  }

  turnsAt(): number {
    return Number.POSITIVE_INFINITY
  }

  rows({ administrator }: AccessView): RowsState {
    const known = this.#requests.isKnown() ? this.#requests.requests() : undefined
    return statedRows(memberRequests, administrator ? known : [], this.#clock.now(), this.#requests.behind())
  }
}

/** Each row says since when it is so; what is known of the rows is known now, or as of when it was. @param seen undefined: nothing was told yet */
function statedRows<S>(
  kind: FleetKind<S>,
  seen: readonly S[] | undefined,
  attemptedAt: number,
  behind?: Behind,
): RowsState {
  if (!seen) {
    const message = "the hub's API did not tell its members yet"
    const read = { outcome: 'unreachable', code: 'members_unknown', message, attemptedAt, freshness: null } as const
    return stateOfRows(kind, read, { rows: Table.empty, aggregations: {} })
  }
  const { since: observedAt = attemptedAt, code = '', message = '' } = behind ?? {}
  const freshness = { observedAt, receivedAt: observedAt, source: 'pull' } as const
  const read = { outcome: behind ? 'unreachable' : 'complete', code, message, attemptedAt, freshness } as const
  return stateOfRows(kind, read, { rows: kind.tableOf(seen), aggregations: kind.count(seen) })
}
