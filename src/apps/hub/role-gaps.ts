import type { RoleGap } from '#connections'
import type { AgentRoles } from '#metricsources'
import type { ClusterName } from '#model'

/** From who gives agents their roles to who says in the status of a MetricSource that one of them lacks a right. */
export class RoleGaps implements AgentRoles {
  readonly #gaps = new Map<ClusterName, readonly RoleGap[]>()

  set(cluster: ClusterName, gaps: readonly RoleGap[]): void {
    if (gaps.length > 0) this.#gaps.set(cluster, gaps)
    else this.#gaps.delete(cluster)
  }

  refusalOf(cluster: ClusterName, { group, kind }: { readonly group: string; readonly kind: string }) {
    return this.#gaps.get(cluster)?.find((gap) => gap.group === group && gap.kind === kind)?.message
  }
}
