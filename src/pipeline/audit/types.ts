/** One thing somebody did or was refused. One per request, whatever number of resources it touched; what decides about a member is one each. */
export interface AuditEntry {
  /** ms since the Unix epoch */
  readonly at: number
  readonly kind:
    | 'access'
    | 'denial'
    | 'sign_in'
    | 'sign_in_failed'
    | 'sign_out'
    | 'view_as'
    | 'administration'
    | 'member'
  readonly requestId: string
  readonly username: string
  /** the administrator behind a "view as" */
  readonly actor?: string
  readonly groups: readonly string[]
  readonly method: string
  /** of the peer */
  readonly address: string
  /** the route as declared, such as `GET /api/v2/clusters/:name`, or what was done about a member, such as `cluster_accepted` */
  readonly route: string
  /** what was asked for, such as `cluster west` */
  readonly resource: string
  readonly status: number
  readonly reason: string
  /** the deciding policy, `<namespace>/<name>`, and its hash; empty where none decided */
  readonly policy: string
  readonly policyHash: string
}

/** Takes entries, and never fails a request. What cannot be written is counted and said in the log. */
export interface AuditTrail extends AsyncDisposable {
  record(entry: AuditEntry): void
  /**
   * Waits until everything recorded so far is in every sink, a sink failed, or five seconds passed: before an answer to what decides about
   * rights or members, so that no decision was answered that the trail does not have.
   */
  flush(): Promise<void>
}

/** Which accesses are written down, and where to. */
export interface AuditConfig {
  /** `denials` (default) or every access */
  readonly level: 'off' | 'denials' | 'all'
  /** a file whose entries are chained by hashes, with a key by keyed ones; absent: none */
  readonly file?: {
    readonly path: string
    readonly maxBytes?: number
    /** full files kept beside the one being written; older ones are removed. Absent: all */
    readonly keepFiles?: number
    readonly key?: Buffer
  }
  /** a capped Redis stream; absent: none */
  readonly stream?: { readonly key: string; readonly maxEntries?: number }
}

/** What a check of an audit file found. */
export interface AuditVerdict {
  readonly ok: boolean
  readonly entries: number
  /** the first line there is, and the last that is whole: note the last elsewhere, as an anchor */
  readonly first?: { readonly seq: number; readonly hash: string }
  readonly last?: { readonly seq: number; readonly hash: string }
  /** the first place where the chain breaks: line, and what is wrong there */
  readonly fault?: { readonly file: string; readonly line: number; readonly why: string }
}
