/** Annotation of a ManagedCluster, as JSON: who decided last about it on the page. The API itself knows the account of the page alone. */
export const DECIDED_ANNOTATION = 'clusterpulse.io/decided'

/** What the annotation says. It is as good as who may write it: nobody but people who may change the cluster, and the page. */
export interface NotedDecision {
  readonly decision: string
  /** who was signed in */
  readonly by: string
  /** ms since the Unix epoch */
  readonly at: number
  /** of the page's own trail */
  readonly request: string
}

const MAX_NAME = 253

/** @returns undefined where there is none, or somebody wrote anything else there */
export function notedDecisionIn(text: string | undefined): NotedDecision | undefined {
  if (text === undefined) return undefined
  try {
    const { decision, by, at, request } = (JSON.parse(text) ?? {}) as Readonly<Record<string, unknown>>
    if (typeof decision !== 'string' || typeof by !== 'string' || typeof request !== 'string') return undefined
    return { decision, by: by.slice(0, MAX_NAME), at: Number(at), request }
  } catch {
    return undefined // somebody else wrote it
  }
}
