import type { AuditEntry } from '#audit'
import type { RoleGap } from '#connections'
import type { ClusterName, OwnerPlace, SourceId } from '#model'
import type { OwnerFolders } from './division.ts'

/** From the manager to a process that owns a part of the fleet. */
export type ToOwner =
  /** told first */
  | {
      readonly kind: 'start'
      readonly place: OwnerPlace
      readonly folders: OwnerFolders
      /** where owners reach each other */
      readonly socketDirectory: string
    }
  /** end by yourself */
  | { readonly kind: 'end' }
  /** asked: a MetricsMoment */
  | { readonly kind: 'metrics' }
  /** asked: nothing, once it is on disk */
  | { readonly kind: 'remove-source'; readonly cluster: ClusterName; readonly source: SourceId }

/** What an owner tells the manager, when it changes. */
export type ToManager =
  /** why it is not ready, by the name of the check */
  | { readonly kind: 'faults'; readonly faults: Readonly<Record<string, string>> }
  /** what the agent of a cluster may not read though MetricSources ask for it; []: it may read all of it */
  | { readonly kind: 'role-gaps'; readonly cluster: ClusterName; readonly gaps: readonly RoleGap[] }
  /** asked: nothing, once it is in the trail, which one process writes */
  | { readonly kind: 'audited'; readonly entry: AuditEntry }
