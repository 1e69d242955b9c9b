/** `strict`: what is unsafe or without effect is refused; `original`: it is taken as Kollect takes it, for the time of a migration. */
export type KollectSemantics = 'strict' | 'original'

/** What is known besides the object. Whatever is absent is not judged by. */
export interface KollectKnown {
  readonly semantics: KollectSemantics
  /** ceiling of one part of an export, in bytes */
  readonly maxExportBytes: number
  /** the agent has rights in namespaces only: kinds of the cluster are refused */
  readonly tenantMode?: boolean
  /** namespace of objects that say none, as kubectl has one */
  readonly namespace?: string
  /** the KollectScopes of its namespace, or the KollectClusterScopes for a kind of the cluster */
  readonly scopes?: readonly unknown[]
  /** Why nothing may be sent to this host, of an address or a name; undefined where it may, or is decided when it is dialed. */
  readonly hostProblem?: (host: string) => string | undefined
  /** `file://` remotes of git may be used */
  readonly allowFiles?: boolean
  /** Why a path of an attribute cannot be used. */
  readonly pathProblem?: (path: string, showsSecrets: boolean) => string | undefined
  /** Why a CEL expression that says true or false cannot be used. */
  readonly predicateProblem?: (expression: string) => string | undefined
}
