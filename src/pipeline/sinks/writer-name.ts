/** Where a writer is, by the end of its name: `in cluster UID`, or `in namespace UID` of an agent of a tenant; undefined: it does not say. */
const homeOf = (writer: string) => / in (?<what>cluster|namespace) (?<uid>\S+)$/.exec(writer)?.groups

/** Whether two writers are surely of two clusters. Another pod or machine of one cluster only came after the former. */
export function areOfTwoClusters(one: string, other: string): boolean {
  const [a, b] = [homeOf(one), homeOf(other)]
  return a !== undefined && b !== undefined && a.what === b.what && a.uid !== b.uid
}

/** Whether two writers are of one cluster, or of two of which one was made from a copy of the other. */
export function areOfOneCluster(one: string, other: string): boolean {
  const [a, b] = [homeOf(one), homeOf(other)]
  return a !== undefined && b !== undefined && a.what === b.what && a.uid === b.uid
}

/** What is told of a writer of another cluster that was here before; undefined: there was none. */
export const replacedBy = (own: string, former: string | undefined): string | undefined =>
  former !== undefined && areOfTwoClusters(own, former)
    ? `it holds what was exported, in place of what ${former} wrote under the same cluster name until then. Where that cluster is still there, give one of both another identity`
    : undefined
