import { seconds } from '#model'
import type { SeenRegistry } from '#registry'
import { targetOf } from './define.ts'
import { defineFleetKind } from './define-snapshot-kind.ts'

/** Measurements that a list shows of each. */
const RECENT = 30

/** Container registries that the hub probes. */
export const registries = defineFleetKind<SeenRegistry>({
  name: 'registries',
  singular: 'registry',
  title: 'Registries',
  target: targetOf('clusterpulse.io/v1alpha1', 'RegistryConnection', 'registryconnections', 'Fleet'),
  everyMs: seconds(60),
  place: ({ facts: { name } }) => ({ namespace: '', name }),
  labels: ({ facts: { labels } }) => labels,
  countBy: 'health',
  sort: 'health',
  columns: {
    displayName: { label: 'Display name', kind: 'string', isExtra: true, read: ({ facts }) => facts.displayName },
    health: {
      label: 'Health',
      kind: 'string',
      health: { healthy: 'healthy', degraded: 'degraded', unhealthy: 'unhealthy', unknown: 'unknown' },
      read: ({ health }) => health,
    },
    endpoint: { label: 'Endpoint', kind: 'string', read: ({ facts }) => facts.endpoint },
    responseMs: {
      label: 'Response (ms)',
      kind: 'number',
      absence: 'unknown',
      read: ({ last }) => last?.responseMs ?? null,
    },
    repositoryCount: {
      ...{ label: 'Repositories', kind: 'number', absence: 'unknown' },
      read: ({ last }) => last?.repositoryCount ?? null,
    },
    version: {
      label: 'Version',
      kind: 'string',
      isVersion: true,
      absence: 'unknown',
      read: ({ last }) => last?.version || null,
    },
    checkedAt: {
      label: 'Checked',
      kind: 'number',
      unit: 'time',
      absence: 'unknown',
      read: ({ last }) => last?.at ?? null,
    },
    message: { label: 'Message', kind: 'string', isWide: true, read: ({ message }) => message },
    type: { label: 'Type', kind: 'string', isExtra: true, read: ({ facts }) => facts.type },
    available: {
      label: 'Available',
      kind: 'boolean',
      isExtra: true,
      absence: 'unknown',
      read: ({ last }) => last?.available ?? null,
    },
    since: {
      label: 'Since',
      kind: 'number',
      unit: 'time',
      isExtra: true,
      absence: 'unknown',
      read: ({ since }) => since,
    },
    stale: { label: 'Stale', kind: 'boolean', isExtra: true, read: ({ stale }) => stale },
    skipTlsVerify: {
      label: 'Certificate unverified',
      kind: 'boolean',
      isExtra: true,
      read: ({ facts }) => facts.skipTlsVerify,
    },
    insecure: { label: 'Plain HTTP', kind: 'boolean', isExtra: true, read: ({ facts }) => facts.insecure },
    intervalMs: { label: 'Interval (ms)', kind: 'number', isExtra: true, read: ({ facts }) => facts.intervalMs },
    recent: {
      ...{ label: 'Last responses (ms)', kind: 'any', isExtra: true },
      read: ({ measurements }) =>
        measurements.slice(-RECENT).map(({ available, responseMs }) => (available ? responseMs : null)),
    },
    features: { label: 'Features', kind: 'any', isExtra: true, read: ({ last }) => ({ ...last?.features }) },
    repositories: {
      label: 'Repository names',
      kind: 'any',
      isExtra: true,
      read: ({ last }) => last?.repositories ?? null,
    },
    catalogTruncated: {
      ...{ label: 'Catalogue truncated', kind: 'boolean', isExtra: true },
      read: ({ last }) => last?.isCatalogTruncated ?? false,
    },
    code: { label: 'Error code', kind: 'string', isExtra: true, read: ({ last }) => last?.code || null },
    error: { label: 'Error', kind: 'string', isExtra: true, read: ({ last }) => last?.error || null },
    warnings: { label: 'Warnings', kind: 'any', isExtra: true, read: ({ last }) => [...(last?.warnings ?? [])] },
  },
})
