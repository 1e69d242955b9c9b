import type { AggregationInfoView, ColumnView, SourceView } from '../../src/contract/http/index.ts'

const minute = 60_000

export const column = (name: string, wish: Partial<ColumnView> = {}): ColumnView => ({
  name,
  label: name,
  kind: 'string',
  unit: 'none',
  computed: false,
  extra: false,
  refersTo: null,
  health: null,
  amount: null,
  restricted: false,
  absence: wish.computed || wish.restricted || wish.amount ? 'unknown' : 'none',
  ...wish,
})

export const aggregation = (
  name: string,
  kind: string,
  wish: Partial<AggregationInfoView> = {},
): AggregationInfoView => ({
  name,
  function: kind,
  field: null,
  groupBy: null,
  unit: 'none',
  hasHistory: wish.groupBy === undefined,
  ...wish,
})

const aSource = (type: string, wish: Partial<SourceView> = {}): SourceView => ({
  id: `clusterpulse/${type}`,
  type,
  title: type,
  names: [type, `${type}s`],
  isDeclared: true,
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  scope: 'Namespaced',
  hash: '0123456789abcdef',
  intervalMs: 2 * minute,
  watch: false,
  columns: [],
  aggregations: [],
  sort: 'name',
  ...wish,
})

export const pvcSource = aSource('pvc', {
  columns: [
    column('phase'),
    column('capacity', { kind: 'number', unit: 'bytes' }),
    column('requested', { kind: 'number', unit: 'bytes' }),
    column('storageClass'),
    column('accessMode'),
    column('createdAt', { unit: 'time' }),
    column('usedPercent', { kind: 'number', unit: 'percent', computed: true }),
    column('pending', { kind: 'boolean', computed: true }),
  ],
  aggregations: [
    aggregation('total_pvcs', 'count'),
    aggregation('total_capacity_bytes', 'sum', { field: 'capacity', unit: 'bytes' }),
    aggregation('avg_used_percent', 'avg', { field: 'usedPercent', unit: 'percent' }),
    aggregation('max_capacity_bytes', 'max', { field: 'capacity', unit: 'bytes' }),
    aggregation('pending_count', 'count'),
    aggregation('by_storage_class', 'count', { groupBy: 'storageClass' }),
    aggregation('capacity_by_storage_class', 'sum', { field: 'capacity', groupBy: 'storageClass', unit: 'bytes' }),
  ],
})
