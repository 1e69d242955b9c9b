import type {
  AccessOfView,
  ExplanationView,
  OwnPoliciesView,
  PermissionsView,
  PoliciesView,
  PolicyView,
  PreviewView,
  SessionView,
  SubjectView,
} from '../../src/contract/http/index.ts'

/** What a fake hub says of access, and what it was asked. A test replaces what it is about. */
export interface FakeAccess {
  policies: PoliciesView
  explain: (question: URLSearchParams) => ExplanationView | null
  permissions: PermissionsView['clusters']
  own: OwnPoliciesView['policies']
  seen: (subject: SubjectView) => AccessOfView['items']
  preview: (asked: { manifest: string; remove?: string[]; subjects?: SubjectView[] }) => PreviewView | string
  /** the one that signs in */
  password: string
  /** whom a right password makes of the one who looks */
  signedIn: NonNullable<SessionView['user']>
  /** from then on no password is taken, for so long */
  throttledForSeconds: number
  readonly viewed: SubjectView[]
  readonly session: { session: SessionView }
}

interface Asked {
  readonly path: string
  readonly url: URL
  readonly body: string
  readonly now: number
}

interface Told {
  readonly status: number
  readonly body: unknown
  readonly headers?: Record<string, string>
  /** also where every other route refuses */
  readonly always?: boolean
}

const ok = (body: unknown): Told => ({ status: 200, body })
const problem = (status: number, code: string, error: string, retryAfterSeconds?: number): Told => ({
  status,
  body: { error, code, requestId: 'req-4711', ...(retryAfterSeconds && { retryAfterSeconds }) },
})

/** undefined: not a route of access. */
export function answerAccess(access: FakeAccess, { path, url, body, now }: Asked): Told | undefined {
  const json = (): never => JSON.parse(body || '{}') as never // each route knows its own
  const { session } = access
  const user = session.session.user
  switch (path) {
    case '/api/v1/auth/login':
      session.session = { ...session.session, authenticated: true, user: access.signedIn }
      return { status: 302, body: {}, headers: { location: url.searchParams.get('returnTo') ?? '/' }, always: true }
    case '/api/v1/auth/password': {
      const { password } = json() as { password: string }
      if (access.throttledForSeconds > 0)
        return { ...problem(429, 'sign_in_throttled', 'too many tries', access.throttledForSeconds), always: true }
      if (password !== access.password)
        return { ...problem(401, 'sign_in_failed', 'user name or password is wrong'), always: true }
      session.session = { ...session.session, authenticated: true, user: access.signedIn }
      return { ...ok({ message: 'signed in' }), always: true }
    }
    case '/api/v1/auth/logout':
      session.session = { ...session.session, authenticated: false, user: null, actor: null }
      return ok({ message: 'signed out' })
    case '/api/v1/auth/explain': {
      const told = access.explain(url.searchParams)
      return told ? ok(told) : problem(404, 'cluster_not_found', 'there is no such cluster')
    }
    case '/api/v1/auth/permissions':
      return ok({
        user,
        summary: {
          total_clusters: Object.keys(access.permissions).length,
          accessible_clusters: Object.keys(access.permissions).length,
        },
        clusters: access.permissions,
        accessible_cluster_names: Object.keys(access.permissions),
        evaluated_at: new Date(now).toISOString(),
      })
    case '/api/v1/auth/policies':
      return ok({
        user,
        total_policies: access.own.length,
        policies: access.own,
        evaluation_order: [],
        retrieved_at: new Date(now).toISOString(),
      })
    case '/api/v2/access/policies':
      return ok(access.policies)
    case '/api/v2/access/seen': {
      const subject = json() as SubjectView
      return ok({ subject, items: access.seen(subject), generation: access.policies.generation })
    }
    case '/api/v2/access/view-as': {
      const subject = json() as SubjectView
      access.viewed.push(subject)
      session.session = {
        ...session.session,
        user: {
          username: subject.username,
          email: '',
          groups: subject.groups ?? [],
          method: user?.method ?? '',
          administrator: false,
        },
        actor: user?.username ?? '',
        sessionEndsAt: now + 15 * 60_000,
      }
      return ok({ message: 'looking' })
    }
    case '/api/v2/access/view-as/end':
      session.session = { ...session.session, user: access.signedIn, actor: null, sessionEndsAt: null }
      return ok({ message: 'back' })
    case '/api/v2/access/preview': {
      const told = access.preview(json())
      return typeof told === 'string' ? problem(400, 'invalid_policy', told) : ok(told)
    }
    default:
      return undefined
  }
}

const noFilter = { names: { allowed: [], denied: [] }, namespaces: { allowed: [], denied: [] }, labels: {}, fields: {} }

export const aPolicy = (key: string, wish: Partial<PolicyView> = {}): PolicyView => ({
  key,
  state: 'Active',
  message: '',
  effect: 'Allow',
  priority: 100,
  enabled: true,
  users: [],
  groups: [],
  serviceAccounts: [],
  notBefore: null,
  notAfter: null,
  hash: '9f2c41d07ab3e65f',
  compiledAt: '2026-01-12T09:14:00Z',
  customTypes: [],
  clusters: [],
  findings: [],
  rules: [],
  defaultAccess: 'none',
  ...wish,
})

const decidedBy: NonNullable<ExplanationView['decidedBy']> = {
  policy: 'clusterpulse/developers',
  hash: '9f2c41d07ab3e65f',
  effect: 'Allow',
  priority: 100,
  rule: 0,
  selectedBy: 'pattern',
}

/** Five policies over the demo fleet, and what they do to alice. */
export function anAccess(session: { session: SessionView }): FakeAccess {
  const filters = {
    namespaces: { ...noFilter, visibility: 'filtered' as const, names: { allowed: ['payments', 'shop'], denied: [] } },
    operators: { ...noFilter, visibility: 'none' as const },
  }
  const items = [
    aPolicy('clusterpulse/no-contractors', {
      effect: 'Deny',
      priority: 900,
      groups: ['contractors'],
      clusters: ['eu-prod-1', 'eu-prod-2'],
      rules: [{ selector: { names: [], pattern: '^eu-prod-', labels: {} }, permissions: [], filters: {} }],
    }),
    aPolicy('clusterpulse/audit-week', {
      state: 'Inactive',
      message: 'valid from 2031-12-01T00:00:00Z',
      priority: 300,
      users: ['olga@example.com'],
      notBefore: '2031-12-01T00:00:00Z',
      notAfter: '2031-12-08T00:00:00Z',
      rules: [
        { selector: { names: ['*'], pattern: '', labels: {} }, permissions: ['view', 'view_metrics'], filters: {} },
      ],
      clusters: ['eu-prod-1', 'eu-prod-2', 'us-stage', 'edge-07', 'lab', 'new-one'],
    }),
    aPolicy('clusterpulse/developers', {
      groups: ['developers'],
      users: ['alice'],
      clusters: ['eu-prod-1', 'eu-prod-2'],
      findings: [
        {
          severity: 'warning',
          code: 'label_filter_unused',
          path: 'spec.scope.clusters.rules[0].resources[1].filters.labels',
          message:
            'Operators have no labels: a label filter on them hides every one. Filter by name or namespace instead.',
        },
      ],
      rules: [
        { selector: { names: [], pattern: '^eu-prod-', labels: {} }, permissions: ['view'], filters },
        {
          selector: { names: [], pattern: '', labels: { env: 'stage' } },
          permissions: ['view', 'view_metrics'],
          filters: {},
        },
      ],
    }),
    aPolicy('clusterpulse/broken', {
      state: 'Error',
      message: 'matchPattern cannot be read',
      priority: 90,
      groups: ['developers'],
      hash: '',
      compiledAt: '',
      findings: [
        {
          severity: 'error',
          code: 'pattern_invalid',
          path: 'spec.scope.clusters.rules[0].selector.matchPattern',
          message: 'The expression ends within a group: close the parenthesis at place 4.',
        },
      ],
    }),
    aPolicy('team-b/everybody', { priority: 10, groups: ['everybody'], defaultAccess: 'allow' }),
  ]
  return {
    session,
    viewed: [],
    password: 'right',
    throttledForSeconds: 0,
    signedIn: {
      username: 'ada',
      email: 'ada@example.com',
      groups: ['operators'],
      method: 'password',
      administrator: true,
    },
    policies: { items, generation: 'g-17', semantics: 'strict' },
    permissions: {
      'eu-prod-1': {
        permissions: ['view'],
        access_level: 'limited',
        visibility: { namespaces: 'filtered', operators: 'none' },
        filters,
        decided_by: null,
      },
      'us-stage': {
        permissions: ['view', 'view_metrics'],
        access_level: 'full',
        visibility: {},
        filters: {},
        decided_by: null,
      },
    },
    own: [
      {
        source: 'group:developers',
        priority: 100,
        state: 'Active',
        message: '',
        policy: {
          policy_name: 'developers',
          namespace: 'clusterpulse',
          effect: 'Allow',
          enabled: true,
          default_cluster_access: 'none',
          cluster_rules: [
            {
              cluster_selector: { matchPattern: '^eu-prod-' },
              permissions: { view: true },
              resources: [
                { type: 'namespaces', visibility: 'filtered', allowed_names: ['payments', 'shop'] },
                { type: 'operators', visibility: 'none' },
              ],
            },
          ],
        },
      },
    ],
    explain: (question) => {
      const cluster = question.get('cluster') ?? ''
      if (cluster === 'nowhere') return null
      const denied = cluster === 'edge-07'
      const [type, name] = [question.get('type') || null, question.get('name') || null]
      const user = session.session.user
      const as = question.get('as') ?? question.get('groups')
      const shown = type !== 'operators' && (type !== 'namespaces' || name === 'payments' || name === 'shop')
      return {
        principal:
          as === null
            ? {
                username: user?.username ?? '',
                email: '',
                groups: user?.groups ?? [],
                administrator: user?.administrator ?? false,
              }
            : {
                username: question.get('as') ?? '',
                email: '',
                groups: (question.get('groups') ?? '').split(',').filter((group) => group !== ''),
                administrator: false,
              },
        question: { action: question.get('action') ?? 'view', cluster, type, name },
        semantics: 'strict',
        generation: 'g-17',
        result: denied ? 'deny' : 'partial',
        reason: denied ? 'No matching policies found' : 'Allowed by policy clusterpulse/developers',
        permissions: denied ? [] : ['view'],
        decidedBy: denied ? null : decidedBy,
        skipped: [
          {
            policy: 'clusterpulse/audit-week',
            effect: 'Allow',
            priority: 300,
            why: 'not_yet_valid',
            detail: 'valid from 2031-12-01T00:00:00Z',
          },
          {
            policy: 'team-b/everybody',
            effect: 'Allow',
            priority: 10,
            why: denied ? 'no_rule_selects_the_cluster' : 'lower_than_the_deciding',
            detail: '',
          },
        ],
        filters: denied ? {} : filters,
        item:
          name === null
            ? null
            : {
                shown,
                why: shown
                  ? `${name} passes the filter of ${type}`
                  : `the filter of ${type} does not let ${name} through`,
              },
      }
    },
    seen: () => [
      {
        cluster: 'eu-prod-1',
        level: 'limited',
        permissions: ['view'],
        decidedBy,
        filters,
        counts: {
          nodes: { shown: 12, of: 12 },
          namespaces: { shown: 2, of: 6 },
          deployments: { shown: 4, of: 12 },
          operators: { shown: 0, of: 3 },
        },
      },
      {
        cluster: 'us-stage',
        level: 'full',
        permissions: ['view', 'view_metrics'],
        decidedBy: { ...decidedBy, rule: 1, selectedBy: 'labels' },
        filters: {},
        counts: {
          nodes: { shown: 4, of: 4 },
          namespaces: { shown: 6, of: 6 },
          deployments: { shown: 12, of: 12 },
          operators: { shown: 0, of: 0 },
        },
      },
      {
        cluster: 'edge-07',
        level: 'none',
        permissions: [],
        decidedBy: null,
        filters: {},
        counts: {
          nodes: { shown: 0, of: 3 },
          namespaces: { shown: 0, of: 6 },
          deployments: { shown: 0, of: 12 },
          operators: { shown: 0, of: 0 },
        },
      },
    ],
    preview: ({ manifest }) =>
      manifest.includes('{{')
        ? 'line 1, column 1: this is no YAML'
        : {
            findings: [
              {
                policy: 'clusterpulse/developers',
                severity: 'warning',
                code: 'filter_empty',
                path: 'spec.scope.clusters.rules[0].resources[0]',
                message: 'It is to be filtered, but by nothing: nothing of it is shown.',
              },
            ],
            changes: [
              {
                subject: { username: 'alice', groups: ['developers'] },
                cluster: 'eu-prod-1',
                before: 'limited',
                after: 'none',
                counts: { nodes: { before: 12, after: 0 }, namespaces: { before: 2, after: 0 } },
                decidedBy: null,
              },
              {
                subject: { username: '', groups: ['developers'] },
                cluster: 'us-stage',
                before: 'none',
                after: 'full',
                counts: { nodes: { before: 0, after: 4 }, namespaces: { before: 0, after: 6 } },
                decidedBy: { ...decidedBy, rule: 1, selectedBy: 'labels' },
              },
            ],
            subjects: 5,
            unchanged: 28,
            truncated: false,
          },
  }
}
