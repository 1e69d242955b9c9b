import { setImmediate } from 'node:timers/promises'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import {
  type Access,
  type AccessView,
  asPrincipal,
  type Comparison,
  compareAccess,
  countsOf,
  type Explanation,
  type Principal,
  policiesOfForeignManifest,
  type Question,
  readStoredPolicy,
  type Semantics,
  type StoredPolicy,
  subjectsOf,
  surveyPolicies,
} from '#access'
import {
  type AccessChangeView,
  accessOf,
  authExplain,
  type ExplanationView,
  endViewAs,
  listPolicies,
  previewPolicies,
  type SubjectView,
  viewAs,
} from '#http'
import type { Identity } from '#identity'
import type { ClusterState, TableRow } from '#model'
import { resources } from '#resources'
import { acceptJson, bodyOf } from '../body.ts'
import { RefusedError } from '../problem.ts'
import { accessViewOf, type Parts, principalOf, route, visibleCluster } from '../route.ts'
import type { VisibleType, VisibleTypes } from '../visible-types.ts'
import { signedIn } from './session.ts'

/** A manifest of a megabyte, written as JSON text. */
const maxBodyBytes = 4 * 2 ** 20
/** What one preview compares and tells; beyond, it says that there is more. */
const maxSubjects = 500
const maxChanges = 5000
const maxPreviewMs = 5000

/** Why somebody sees something; for administrators: the policies, what others see, and what would change. */
export function accessRoutes(
  app: FastifyInstance,
  parts: Parts,
  { identity, semantics }: { readonly identity: Identity; readonly semantics: Semantics },
): void {
  const { access, state } = parts

  route(app, parts, authExplain, async ({ request, query }) => {
    const asker = accessViewOf(request)
    const groups = query.groups
      ?.split(',')
      .map((group) => group.trim())
      .filter(Boolean)
    const aboutOther = query.as !== undefined || groups !== undefined
    if (aboutOther && !asker.administrator)
      throw new RefusedError('administrators_only', 'why somebody else sees something is for administrators to ask')
    if (aboutOther) note(request, query.as ?? '', groups)
    const principal = aboutOther ? asPrincipal({ username: query.as ?? '', groups }) : principalOf(request)
    const { state: cluster } = visibleCluster(parts, asker, query.cluster)
    const explanation = await explained(parts, principal, cluster, query, asker)
    return { fresh: explanationView(access, explanation) }
  })

  route(app, parts, listPolicies, async ({ now }) => {
    const { generation, policies } = await access.policies()
    return { fresh: { items: surveyPolicies(policies, state.clusters(), { now, semantics }), generation, semantics } }
  })

  route(app, parts, endViewAs, ({ request, reply }) => {
    request.auditNote = { kind: 'view_as', reason: 'ended' }
    const answer = identity.endViewAs(request.raw)
    return signedIn(reply, { ...answer, body: answer.body ?? { message: 'These are your own eyes again' } })
  })

  app.register(async (bodies: FastifyInstance) => {
    acceptJson(bodies, maxBodyBytes)

    route(bodies, parts, accessOf, async ({ request }) => {
      const subject = bodyOf(accessOf, request)
      note(request, subject.username, subject.groups)
      const accessView = await access.viewOf(asPrincipal(subject))
      return {
        fresh: {
          subject,
          items: seen(accessView, accessViewOf(request), state.clusters()),
          generation: accessView.generation,
        },
      }
    })

    route(bodies, parts, viewAs, ({ request, reply }) => {
      const subject = bodyOf(viewAs, request)
      request.auditNote = { kind: 'view_as', resource: describe(subject.username, subject.groups), reason: 'began' }
      const { username, email, groups, isServiceAccount } = asPrincipal(subject)
      const as = { username, groups, isServiceAccount, ...(email !== '' && { email }) }
      const answer = identity.viewAs(principalOf(request), as, request.raw)
      return signedIn(reply, { ...answer, body: answer.body ?? { message: `These are the eyes of ${username} now` } })
    })

    route(bodies, parts, previewPolicies, async ({ request, now }) => {
      const { manifest, remove = [], subjects = [] } = bodyOf(previewPolicies, request)
      const { policies, findings } = await policiesOfForeignManifest(manifest, { now })
      const before = (await access.policies()).policies
      const after = new Map(before.map((policy) => [policy.key, policy]))
      for (const key of remove) after.delete(key)
      for (const document of policies) {
        const key = `${document.namespace}/${document.policy_name}`
        // As the store would give it back, so that the preview reads what the hub would read.
        after.set(key, readStoredPolicy(key, JSON.stringify(document)))
      }
      const sets: Sets = { before, after: [...after.values()], given: subjects.map(asPrincipal) }
      const shownFindings = findings.map(({ policy, finding }) => ({ policy, ...finding }))
      return { fresh: { findings: shownFindings, ...(await preview(parts, sets)) } }
    })
  })
}

interface ItemQuestion {
  readonly action?: 'view' | 'view_metrics'
  readonly type?: string
  readonly name?: string
  readonly namespace?: string
}

/** An item is compared with all that is known of it, as far as the asker may know it. */
async function explained(
  { access, types }: Parts,
  principal: Principal,
  cluster: ClusterState,
  { action = 'view', type, name, namespace }: ItemQuestion,
  asker: AccessView,
): Promise<Explanation> {
  const [kind] = types.ofType(type ?? '')
  const resource = kind && types.standard(kind)
  const about: Question = {
    action,
    cluster: { name: cluster.name, labels: cluster.connection?.labels ?? {} },
    ...(type !== undefined && { type }),
    ...(resource && { resource }),
    ...(name !== undefined && { name }),
  }
  if (name === undefined) return access.explain(principal, about)
  const item =
    itemOf(asker, cluster, type ?? '', name) ?? customItem(types, asker, cluster, type ?? '', name, namespace)
  const places = namespace === undefined ? item.namespaces : [namespace]
  const whole = {
    ...about,
    ...(item.labels && { labels: item.labels }),
    ...(item.fields && { fields: item.fields }),
    ...(resource?.about && objectOfEvent(types, asker, cluster, item)),
  }
  const placed = (place: string | undefined): Question => ({
    ...whole,
    ...(place !== undefined && { namespace: place, ...labelsOfNamespace(asker, cluster, place) }),
  })
  // An operator is shown where one of its namespaces is visible.
  let explanation = await access.explain(principal, placed(places[0]))
  for (const place of places.slice(1, maxPlaces)) {
    if (explanation.item?.shown) break
    explanation = await access.explain(principal, placed(place))
  }
  return explanation
}

const maxPlaces = 100

/** What is known of the object that an event is about. */
function objectOfEvent(
  types: VisibleTypes,
  asker: AccessView,
  cluster: ClusterState,
  { fields, namespaces: [namespace = ''] }: KnownItem,
): Pick<Question, 'object'> {
  const [kind = '', name = ''] = String(fields?.object ?? '').split(/\/(.*)/s)
  if (kind === 'Node') return { object: { ...itemOf(asker, cluster, 'nodes', name), values: {} } }
  const its = resources.find(({ targets }) => targets.some((target) => target.kind === kind))
  const found = its && customItem(types, asker, cluster, types.nameOf(its), name, namespace)
  return found?.fields ? { object: { ...found, values: found.fields } } : {}
}

function labelsOfNamespace(
  accessView: AccessView,
  cluster: ClusterState,
  name: string,
): Pick<Question, 'namespaceLabels'> {
  const namespace = accessView.visible(cluster, 'namespace').find((one) => one.name === name)
  return namespace ? { namespaceLabels: namespace.labels } : {}
}

interface KnownItem {
  readonly namespaces: readonly string[]
  readonly labels?: Readonly<Record<string, string>>
  readonly fields?: Readonly<Record<string, unknown>>
}

/** Through the asker's eyes: what is hidden from them is as unknown here as what is not there. */
function itemOf(accessView: AccessView, cluster: ClusterState, type: string, name: string): KnownItem | undefined {
  switch (type) {
    case 'nodes': {
      const node = accessView.visible(cluster, 'node').find((one) => one.name === name)
      return { namespaces: [], ...(node && { labels: node.labels }) }
    }
    case 'namespaces': {
      const namespace = accessView.visible(cluster, 'namespace').find((one) => one.name === name)
      return { namespaces: [], ...(namespace && { labels: namespace.labels }) }
    }
    case 'operators': {
      const operator = accessView
        .visible(cluster, 'operator')
        .find((one) => one.name === name || one.displayName === name)
      return { namespaces: operator?.availableInNamespaces ?? [] }
    }
    default:
      return undefined
  }
}

/** A row of a type that a MetricSource collects, or of a kind that is compiled in; of several of this name, in several namespaces, the first. */
function customItem(
  types: VisibleTypes,
  accessView: AccessView,
  cluster: ClusterState,
  typeName: string,
  name: string,
  namespace: string | undefined,
): KnownItem {
  const [source] = types.ofType(typeName)
  const type = source && types.on(accessView, cluster, source)
  const row = type && rowNamed(type, name, namespace)
  if (!row) return { namespaces: [] }
  return { namespaces: row.namespace === '' ? [] : [row.namespace], labels: row.labels, fields: row.values }
}

function rowNamed(type: VisibleType, name: string, namespace: string | undefined): TableRow | undefined {
  const { rows, source } = type
  for (let place = 0; place < rows.size; place++) {
    const key = rows.nameAt(place)
    if (source.rowName(key) !== name) continue
    const within = rows.namespaceAt(place)
    if ((namespace ?? within) === within && type.placeOf(within, key) >= 0) return rows.row(place)
  }
  return undefined
}

function explanationView(
  access: Access,
  { question, principal, decidedBy, item, ...rest }: Explanation,
): ExplanationView {
  const { username, email, groups } = principal
  const { action, cluster, type = null, name = null } = question
  return {
    principal: { username, email, groups: [...groups], administrator: access.isAdministrator(principal) },
    question: { action, cluster: cluster.name, type, name },
    semantics: rest.semantics,
    generation: rest.generation,
    result: rest.result,
    reason: rest.reason,
    permissions: [...rest.permissions],
    decidedBy: decidedBy && { ...decidedBy },
    skipped: rest.skipped.map(({ policy, effect, priority, why, detail }) => ({
      policy,
      effect,
      priority,
      why,
      detail,
    })),
    filters: mutable(rest.filters),
    item: item ?? null,
  }
}

// Views are written as schemas have them, without readonly.
const mutable = (filters: Explanation['filters']): ExplanationView['filters'] => filters as ExplanationView['filters']

interface Sets {
  readonly before: readonly StoredPolicy[]
  readonly after: readonly StoredPolicy[]
  readonly given: readonly Principal[]
}

/** Everyone whom a policy names before or after, each cluster; those who share what they see are compared once. */
async function preview({ access, state }: Parts, { before, after, given }: Sets) {
  const asked = [...given, ...subjectsOf([...before, ...after])]
  const wasIn = access.withPolicies(before)
  const wouldBeIn = access.withPolicies(after)
  const clusters = state.clusters()
  const comparisons = new Map<string, Comparison>()
  const changes: AccessChangeView[] = []
  const began = performance.now()
  let subjects = 0
  let unchanged = 0
  for (const principal of asked.slice(0, maxSubjects)) {
    if (changes.length >= maxChanges || performance.now() - began > maxPreviewMs) break
    await setImmediate() // others are answered meanwhile
    const was = await wasIn.viewOf(principal)
    const wouldBe = await wouldBeIn.viewOf(principal)
    const key = JSON.stringify([was.fingerprint, wouldBe.fingerprint])
    const comparison = comparisons.get(key) ?? compareAccess(was, wouldBe, clusters)
    comparisons.set(key, comparison)
    subjects += 1
    unchanged += comparison.unchanged
    const subject = subjectView(principal)
    for (const change of comparison.changes) changes.push({ subject, ...change, counts: { ...change.counts } })
  }
  const truncated = subjects < asked.length || changes.length > maxChanges
  return { changes: changes.slice(0, maxChanges), subjects, unchanged, truncated }
}

const subjectView = ({ username, email, groups }: Principal): SubjectView => ({
  username,
  ...(email !== '' && { email }),
  groups: [...groups],
})

/** Beside what there is, which the administrator sees. */
function seen(accessView: AccessView, all: AccessView, clusters: readonly ClusterState[]) {
  return clusters.map((cluster) => {
    const { level, permissions, decidedBy, filters } = accessView.permissions(cluster)
    const there = countsOf(all, cluster)
    const counts = Object.entries(countsOf(accessView, cluster)).map(([type, shown]) => [
      type,
      { shown, of: there[type] ?? 0 },
    ])
    return { cluster: cluster.name, level, permissions, decidedBy, filters, counts: Object.fromEntries(counts) }
  })
}

const describe = (username: string, groups: readonly string[] = []): string =>
  `the eyes of ${username || 'nobody by name'}${groups.length > 0 ? ` (${groups.join(', ')})` : ''}`.slice(0, 500)

function note(request: FastifyRequest, username: string, groups?: readonly string[]): void {
  request.auditNote = { kind: 'administration', resource: describe(username, groups) }
}
