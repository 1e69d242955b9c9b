import type { PolicyDocument } from '../types.ts'

/** An Allow of everything for one group, unless `over` says otherwise. */
export function aDocument(name: string, over: Partial<PolicyDocument> = {}): PolicyDocument {
  return {
    policy_name: name,
    namespace: 'clusterpulse',
    priority: 100,
    effect: 'Allow',
    enabled: true,
    users: [],
    groups: ['developers'],
    service_accounts: [],
    default_cluster_access: 'none',
    cluster_rules: [{ cluster_selector: { matchPattern: '.*' }, permissions: { view: true }, resources: null }],
    not_before: null,
    not_after: null,
    compiled_at: '2026-01-02T03:04:05Z',
    hash: '0123456789abcdef',
    custom_resource_types: null,
    ...over,
  }
}
