import type {
  AggregatedView,
  AggregationInfoView,
  ColumnView,
  CustomPageView,
  CustomRowView,
  HistoryView,
  SourcesView,
  SourceTrialView,
  SourceView,
  TypeOnClusterView,
  TypeView,
} from '../../src/contract/http/index.ts'

const GiB = 2 ** 30
const minute = 60_000

/** A type on one cluster, as somebody is shown it. */
export interface FakeOn {
  readonly rows: readonly CustomRowView[]
  /** what differs from a whole and fresh collection */
  readonly on?: Partial<TypeOnClusterView>
}

export interface FakeType {
  readonly source: SourceView
  readonly on: Map<string, FakeOn>
}

/** What a fake hub collects by declaration. A test replaces what it is about. */
export interface FakeCustoms {
  readonly types: Map<string, FakeType>
  sources: SourcesView
  attempt: (asked: { manifest: string; cluster?: string }) => SourceTrialView
  readonly tried: { manifest: string; cluster?: string }[]
  /** what rows and types answer instead, if anything */
  refuse: { status: number; code: string; error: string } | null
}

export const column = (name: string, wish: Partial<ColumnView> = {}): ColumnView => ({
  name,
  label: name,
  kind: 'string',
  unit: 'none',
  computed: false,
  extra: false,
  refersTo: null,
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

export const aSource = (type: string, wish: Partial<SourceView> = {}): SourceView => ({
  id: `clusterpulse/${type}`,
  type,
  title: type,
  names: [type],
  isDeclared: true,
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  scope: 'Namespaced',
  hash: '0123456789abcdef',
  intervalMs: 2 * minute,
  watch: false,
  columns: [],
  aggregations: [],
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

const classes = ['gp3-csi', 'gp3-csi', 'gp3-csi', 'efs', 'efs', 'local-block', 'ceph-rbd', 'ceph-rbd', '']

/** So many claims, the same each time. */
export function pvcRows(count: number, now: number): CustomRowView[] {
  return Array.from({ length: count }, (_, place): CustomRowView => {
    const namespace = ['payments', 'checkout', 'ledger', 'search', 'ml-training'][place % 5] ?? 'payments'
    const name = `data-${namespace}-${String(place).padStart(5, '0')}`
    const isPending = place % 17 === 3
    const capacity = [1, 5, 10, 20, 50, 100, 500][place % 7] ?? 1
    return {
      id: `${namespace}/${name}`,
      namespace,
      name,
      labels: { app: namespace, 'app.kubernetes.io/managed-by': 'helm' },
      values: {
        phase: isPending ? 'Pending' : 'Bound',
        capacity: isPending ? null : capacity * GiB,
        requested: capacity * GiB,
        storageClass: classes[place % classes.length] || null,
        accessMode: place % 3 === 0 ? 'ReadWriteMany' : 'ReadWriteOnce',
        createdAt: new Date(now - (place + 1) * 7 * 3_600_000).toISOString(),
        usedPercent: isPending ? null : ((place * 37) % 1000) / 10,
        pending: isPending,
      },
    }
  })
}

export function someCustoms(now: number): FakeCustoms {
  const certificates = aSource('certificate', {
    apiVersion: 'cert-manager.io/v1',
    kind: 'Certificate',
    intervalMs: 5 * minute,
    watch: true,
    columns: [
      column('ready', { kind: 'boolean' }),
      column('notAfter', { unit: 'time' }),
      column('daysLeft', { kind: 'number', computed: true }),
      column('issuer'),
    ],
    aggregations: [
      aggregation('certificates', 'count'),
      aggregation('expiring_soon', 'count'),
      aggregation('min_days_left', 'min', { field: 'daysLeft' }),
    ],
  })
  const rows = Array.from({ length: 14 }, (_, place): CustomRowView => {
    const days = [-2, 3, 12, 29, 45, 60, 88][place % 7] ?? 1
    return {
      id: `ingress/tls-${place}`,
      namespace: 'ingress',
      name: `tls-${place}`,
      labels: {},
      values: {
        ready: days > 0,
        notAfter: new Date(now + days * 86_400_000).toISOString(),
        daysLeft: days,
        issuer: place % 3 === 0 ? 'letsencrypt' : 'corporate-ca',
      },
    }
  })
  const failed = (outcome: 'absent' | 'forbidden' | 'unreachable', code: string, message: string): FakeOn => ({
    rows: [],
    on: {
      part: { outcome, code, message, attemptedAt: now - 40_000, freshness: null, count: 0 },
    },
  })
  return {
    types: new Map([
      [
        'pvc',
        {
          source: pvcSource,
          on: new Map<string, FakeOn>([
            ['eu-prod-1', { rows: pvcRows(5000, now) }],
            [
              'eu-prod-2',
              {
                rows: pvcRows(240, now),
                on: {
                  truncated: true,
                  errorCount: 2,
                  errors: [
                    {
                      namespace: 'vault',
                      outcome: 'forbidden',
                      code: 'kube_forbidden',
                      message: 'persistentvolumeclaims is forbidden in namespace vault',
                    },
                    {
                      namespace: 'batch',
                      outcome: 'unreachable',
                      code: 'kube_timeout',
                      message: 'no answer within 10 s',
                    },
                  ],
                },
              },
            ],
            ['lab', { rows: [] }],
            [
              'us-stage',
              failed(
                'forbidden',
                'kube_forbidden',
                'persistentvolumeclaims is forbidden: no list at the cluster scope',
              ),
            ],
          ]),
        },
      ],
      [
        'certificate',
        {
          source: certificates,
          on: new Map<string, FakeOn>([
            ['eu-prod-1', { rows, on: { outdated: true } }],
            ['eu-prod-2', failed('absent', 'kind_not_served', 'cert-manager.io/v1 Certificate is not served')],
            ['us-stage', failed('unreachable', 'cluster_unreachable', 'connection refused')],
          ]),
        },
      ],
    ]),
    sources: {
      items: [
        {
          source: pvcSource,
          manifest: 'apiVersion: clusterpulse.io/v1alpha1\nkind: MetricSource\n',
          clusters: 3,
          rows: 5240,
          errors: 2,
        },
      ],
      functions: [
        { name: 'round', signature: 'round(number, digits?)', description: 'to so many digits, 0 without' },
        { name: 'max', signature: 'max(a, b, …)', description: 'the greatest number' },
        { name: 'age', signature: 'age(time)', description: 'seconds since then' },
      ],
    },
    attempt: ({ manifest, cluster }) => {
      const wrong = manifest.indexOf('capacty')
      if (wrong >= 0)
        return {
          findings: [
            {
              severity: 'error',
              code: 'expression_unknown_name',
              path: 'spec.computed[0].expression',
              message: 'there is no field or computed value called capacty above this one',
              at: { text: 'round(capacty / 1073741824, 2)', from: 6, to: 13 },
              suggestion: 'capacity',
            },
          ],
          source: null,
          result: null,
          note: null,
        }
      const items = pvcRows(20, now)
      return {
        findings: [],
        source: pvcSource,
        result: cluster
          ? {
              part: partOf(20, now),
              truncated: false,
              durationMs: 84,
              items,
              total: 20,
              aggregations: aggregate(pvcSource.aggregations, items),
              reports: [
                { field: 'capacity', missing: 2, malformed: 0, example: '' },
                { field: 'storageClass', missing: 3, malformed: 1, example: '[object]' },
              ],
              errors: [],
            }
          : null,
        note: cluster ? null : 'no cluster was chosen',
      }
    },
    tried: [],
    refuse: null,
  }
}

const partOf = (count: number, now: number): TypeOnClusterView['part'] => ({
  outcome: 'complete',
  code: '',
  message: '',
  attemptedAt: now - 9000,
  freshness: { observedAt: now - 9000, receivedAt: now - 8900, source: 'pull' },
  count,
})

function aggregate(
  infos: readonly AggregationInfoView[],
  rows: readonly CustomRowView[],
): Record<string, AggregatedView> {
  const one = ({ name, function: kind, field }: AggregationInfoView, of: readonly CustomRowView[]) => {
    if (kind === 'count')
      return name.startsWith('pending') ? of.filter(({ values }) => values.pending).length : of.length
    const numbers = of.map(({ values }) => values[field ?? '']).filter((value) => typeof value === 'number')
    if (numbers.length === 0) return null
    const sum = numbers.reduce((a, b) => a + b, 0)
    if (kind === 'sum') return sum
    if (kind === 'min') return numbers.reduce((a, b) => Math.min(a, b))
    return kind === 'max' ? numbers.reduce((a, b) => Math.max(a, b)) : Math.round((sum / numbers.length) * 100) / 100
  }
  return Object.fromEntries(
    infos.map((info) => {
      const { groupBy } = info
      if (groupBy === null) return [info.name, one(info, rows)]
      const groups = new Map<string, CustomRowView[]>()
      for (const row of rows) {
        const group = String(row.values[groupBy] ?? '_unknown_')
        const members = groups.get(group)
        if (members) members.push(row)
        else groups.set(group, [row])
      }
      return [info.name, Object.fromEntries([...groups].map(([group, of]) => [group, one(info, of)]))]
    }),
  )
}

interface Asked {
  readonly path: string
  readonly url: URL
  readonly body: string
  readonly now: number
  readonly displayName: (cluster: string) => string | undefined
}

interface Told {
  readonly status: number
  readonly body: unknown
  readonly headers?: Record<string, string>
  readonly always?: boolean
}

const ok = (body: unknown): Told => ({ status: 200, body })
const noType: Told = {
  status: 404,
  body: { error: 'there is no such type', code: 'type_not_found', requestId: 'req-4711' },
}

/** undefined: not a route of types. */
export function answerCustoms(customs: FakeCustoms, asked: Asked): Told | undefined {
  const { path, url, body } = asked
  const words = path.split('/').slice(1).map(decodeURIComponent)
  if (words[0] !== 'api' || words[1] !== 'v2') return undefined
  const isOurs =
    words[2] === 'types' || words[2] === 'metric-sources' || (words[2] === 'clusters' && words[4] === 'types')
  if (!isOurs) return undefined
  if (customs.refuse) {
    const { status, ...problem } = customs.refuse
    return { status, body: { ...problem, requestId: 'req-4711' } }
  }
  if (words[2] === 'metric-sources') {
    if (words[3] !== 'try') return ok(customs.sources)
    const question = JSON.parse(body) as { manifest: string; cluster?: string }
    customs.tried.push(question)
    return ok(customs.attempt(question))
  }
  if (words[2] === 'types') {
    const only = url.searchParams.get('cluster')
    const views = [...customs.types.values()].map((type) => viewOf(type, only, asked))
    if (words[3] === undefined)
      return ok({ items: views.filter(({ clusters }) => only === null || clusters.length > 0) })
    const view = views.find(({ type }) => type === words[3])
    return view ? ok(view) : noType
  }
  const [, , , cluster = '', , name = '', more] = words
  const type = customs.types.get(name)
  const on = type?.on.get(cluster)
  if (!type || !on || asked.displayName(cluster) === undefined) return noType
  if (more === 'history') return ok(historyOf(url.searchParams, cluster, asked.now))
  return ok(rowsOf(type, on, cluster, asked))
}

function onOf(type: FakeType, cluster: string, { rows, on }: FakeOn, { now, displayName }: Asked): TypeOnClusterView {
  return {
    cluster,
    displayName: displayName(cluster) ?? '',
    part: partOf(rows.length, now),
    truncated: false,
    errors: [],
    errorCount: 0,
    outdated: false,
    stale: false,
    filtered: false,
    aggregations: aggregate(type.source.aggregations, rows),
    ...on,
  }
}

function viewOf(type: FakeType, only: string | null, asked: Asked): TypeView {
  const clusters = [...type.on]
    .filter(([cluster]) => (only === null || cluster === only) && asked.displayName(cluster) !== undefined)
    .map(([cluster, on]) => onOf(type, cluster, on, asked))
  return {
    type: type.source.type,
    sources: [type.source],
    clusters,
    count: clusters.reduce((sum, { part }) => sum + part.count, 0),
  }
}

function rowsOf(type: FakeType, on: FakeOn, cluster: string, asked: Asked): CustomPageView {
  const query = asked.url.searchParams
  const words = (query.get('q') ?? '').toLowerCase().split(/\s+/)
  const sort = query.get('sort') ?? 'name'
  const down = query.get('order') === 'desc'
  const keyOf = (row: CustomRowView) =>
    sort === 'name' ? row.name : sort === 'namespace' ? row.namespace : (row.values[sort] ?? null)
  const found = on.rows
    .filter((row) =>
      words.every((word) => word === '' || JSON.stringify([row.id, row.values]).toLowerCase().includes(word)),
    )
    .filter(({ namespace }) => namespace === (query.get('namespace') ?? namespace))
    .filter((row) =>
      query.getAll('where').every((text) => {
        const [, field = '', sign = '', wanted = ''] = /^(\w+)(!=|=|<|>)(.*)$/.exec(text) ?? []
        const value = row.values[field] ?? null
        if (sign === '=') return String(value) === wanted
        if (sign === '!=') return String(value) !== wanted
        return typeof value === 'number' && (sign === '>' ? value > Number(wanted) : value < Number(wanted))
      }),
    )
    .toSorted((a, b) => {
      const [x, y] = [keyOf(a), keyOf(b)]
      if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1
      return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1)
    })
  const from = Number(query.get('cursor') ?? 0)
  const limit = Number(query.get('limit') ?? 100)
  return {
    items: found.slice(from, from + limit),
    total: found.length,
    next: from + limit < found.length ? String(from + limit) : null,
    source: type.source,
    on: onOf(type, cluster, on, asked),
  }
}

function historyOf(query: URLSearchParams, cluster: string, now: number): HistoryView {
  const step = Number(query.get('step') ?? 60)
  const spans: Readonly<Record<string, number>> = { m: 60, h: 3600, d: 86_400 }
  const [, count = '1', unit = 'h'] = /^(\d+)([mhd])$/.exec(query.get('range') ?? '1h') ?? []
  const end = query.has('end') ? Number(query.get('end')) : now / 1000
  const start = query.has('start') ? Number(query.get('start')) : end - Number(count) * (spans[unit] ?? 1)
  const first = Math.floor(start / step) * step
  const last = Math.floor(Math.min(end, now / 1000) / step) * step
  const metrics = (query.get('metric') ?? '').split(',')
  return {
    metrics: metrics.map((name) => ({ name, unit: 'count', title: name })),
    start: first,
    end: last,
    step,
    spans: [],
    series: metrics.map((metric, place) => ({
      metric,
      labels: { cluster },
      points: Array.from({ length: Math.max(0, (last - first) / step + 1) }, (_, index): [number, number | null] => {
        const at = first + index * step
        const wave = 1 + 0.1 * Math.sin(at / 700 + place) + 0.05 * Math.sin(at / 90 + place)
        return [at, metric.includes('bytes') ? 40_000 * GiB * wave : metric.includes('days') ? -2 * wave : 60 * wave]
      }),
    })),
  }
}
