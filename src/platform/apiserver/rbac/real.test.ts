import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { noRealApiServer, startRealApiServer } from '../../../../test/real-apiserver.ts'
import { type Answer, eventually, type Subject, subjectAt } from '../behaviour/subject.ts'
import { listenApi } from '../listen.ts'
import { ApiServer } from '../server.ts'
import type { ApiObject } from '../types.ts'
import { defaultRoles } from './default-roles.ts'
import type { BindingObject, RoleObject } from './objects.ts'
import { NAMESPACES, RandomRbac, type RbacWorld, type Somebody, WRITERS } from './test/random-world.ts'

/*
 * The same roles and bindings in a real kube-apiserver and in ours, and the same questions to both: any difference is a fault.
 * RBAC_QUESTIONS says how many (npm run soak rbac: 10 000); RBAC_SEED which.
 */
const QUESTIONS = Number(process.env.RBAC_QUESTIONS ?? 500)
const SEED = Number(process.env.RBAC_SEED ?? 1)
const PER_WORLD = 100
const AT_ONCE = 16

const missing = noRealApiServer()
const skip = missing !== undefined && process.env.CI_REQUIRE_ALL !== '1'
const RBAC = '/apis/rbac.authorization.k8s.io/v1'
const API_GROUP = 'rbac.authorization.k8s.io'

const pathOf = ({ kind, metadata }: ApiObject): string =>
  `${RBAC}/${metadata.namespace ? `namespaces/${metadata.namespace}/` : ''}${kind.toLowerCase()}s`

const objectsOf = (world: RbacWorld): ApiObject[] => [
  ...world.clusterRoles,
  ...world.roles,
  ...world.clusterRoleBindings,
  ...world.roleBindings,
]

async function each<T>(list: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = [...list]
  const worker = async () => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) await work(item)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

const asked = (subject: Subject, spec: object): Promise<Answer> =>
  subject.ask('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', { body: { spec } })

const rulesAsSet = (rules: readonly object[]): string[] =>
  [...new Set(rules.map((rule) => JSON.stringify(sorted(rule))))].sort()
const sorted = (rule: object): object =>
  Object.fromEntries(
    Object.entries(rule)
      .filter(([, value]) => value !== undefined && value !== null)
      .sort(),
  )

describe.skipIf(skip)(`RBAC beside a real kube-apiserver${skip ? ` (skipped: ${missing})` : ''}`, () => {
  let ours: Subject
  let real: Subject
  let collects: boolean
  const both = async (method: string, path: string, body?: unknown): Promise<void> => {
    for (const subject of [ours, real]) {
      const { code, body: answer } = await subject.ask(method, path, body === undefined ? {} : { body })
      if (code >= 300 && code !== 409) throw new Error(`${method} ${path}: ${code} ${JSON.stringify(answer)}`)
    }
  }

  beforeAll(async () => {
    const server = await ApiServer.open({ storage: { kind: 'memory' }, defaultRoles: true })
    const grant = { token: 'suite-token', user: 'admin', groups: ['system:masters'] }
    const listener = await listenApi({ mounts: new Map([['', server]]), tokens: [grant] })
    const end = async () => {
      await listener[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    }
    ours = subjectAt({ url: listener.url, ca: listener.caPem, token: 'suite-token', real: false, stop: end })
    const started = await startRealApiServer()
    if (started?.access.credentials.kind !== 'token') throw new Error('there is no real kube-apiserver here')
    const { server: url, ca = '', credentials } = started.access
    collects = await started.aggregateRoles()
    real = subjectAt({ url, ca, token: credentials.token, real: true, stop: () => started.stop() })
    for (const name of NAMESPACES) await both('POST', '/api/v1/namespaces', { metadata: { name } })
    const resources = ['roles', 'clusterroles', 'rolebindings', 'clusterrolebindings']
    await both('POST', `${RBAC}/clusterroles`, {
      metadata: { name: WRITERS },
      rules: [{ verbs: ['create'], apiGroups: [API_GROUP], resources }],
    })
    await both('POST', `${RBAC}/clusterrolebindings`, {
      metadata: { name: WRITERS },
      roleRef: { apiGroup: API_GROUP, kind: 'ClusterRole', name: WRITERS },
      subjects: [{ apiGroup: API_GROUP, kind: 'Group', name: WRITERS }],
    })
  })

  afterAll(async () => {
    await ours?.[Symbol.asyncDispose]()
    await real?.[Symbol.asyncDispose]()
  })

  /** Waits until the original decides by all that was written: it follows each kind by a watch of its own. */
  async function settle(round: string, { clusterRoles }: RbacWorld): Promise<void> {
    if (collects)
      for (const { metadata } of clusterRoles.filter(({ aggregationRule }) => aggregationRule)) {
        const rules = async (subject: Subject) =>
          rulesAsSet(
            ((await subject.ask('GET', `${RBAC}/clusterroles/${metadata.name}`)).body as RoleObject).rules ?? [],
          )
        await expect
          .poll(async () => isDeepStrictEqual(await rules(ours), await rules(real)))
          .toBe(true)
          .catch(async () => expect(await rules(ours)).toEqual(await rules(real)))
      }
    const rules = [{ verbs: ['settle'], apiGroups: [''], resources: ['pods'] }]
    const subjects = [{ apiGroup: API_GROUP, kind: 'User', name: round }]
    const [namespace = ''] = NAMESPACES
    await both('POST', `${RBAC}/clusterroles`, { metadata: { name: round }, rules })
    await both('POST', `${RBAC}/namespaces/${namespace}/roles`, { metadata: { name: round }, rules })
    const roleRef = (kind: string) => ({ apiGroup: API_GROUP, kind, name: round })
    await both('POST', `${RBAC}/clusterrolebindings`, {
      metadata: { name: round },
      subjects,
      roleRef: roleRef('ClusterRole'),
    })
    const own = [{ apiGroup: API_GROUP, kind: 'User', name: `${round}-own` }]
    await both('POST', `${RBAC}/namespaces/${namespace}/rolebindings`, {
      metadata: { name: round },
      subjects: own,
      roleRef: roleRef('Role'),
    })
    for (const user of [round, `${round}-own`])
      await eventually(
        () => asked(real, { user, resourceAttributes: { verb: 'settle', resource: 'pods', namespace } }),
        ({ body }) => body.status.allowed,
      )
  }

  async function inWorlds(
    questions: number,
    ask: (random: RandomRbac, count: number, world: RbacWorld) => Promise<void>,
    name: string,
  ) {
    for (let begun = 0, round = 0; begun < questions; begun += PER_WORLD, round++) {
      const random = new RandomRbac(SEED * 100_003 + round)
      const id = `${name}-${round}`
      const world = random.world(id)
      // What collects is left out where nothing of the original fills it.
      const objects = objectsOf(world).filter((object) => collects || !(object as RoleObject).aggregationRule)
      await each(objects, (object) => both('POST', pathOf(object), object))
      await settle(id, world)
      await ask(random, Math.min(PER_WORLD, questions - begun), world)
      await each(objects, (object) => both('DELETE', `${pathOf(object)}/${object.metadata.name}`))
    }
  }

  it('answers random questions as the original does', { timeout: 60_000 + QUESTIONS * 100 }, async () => {
    const differences: object[] = []
    let allowed = 0
    await inWorlds(
      QUESTIONS,
      async (random, count, world) => {
        const specs = Array.from({ length: count }, () => random.question(world))
        await each(specs, async (spec) => {
          const [own, original] = await Promise.all([asked(ours, spec), asked(real, spec)])
          const answers = [own, original].map(({ code, body }) => ({ code, allowed: body.status?.allowed }))
          if (original.body.status?.allowed) allowed++
          // Which of several rules is named first is not said; that a role is missing is.
          const reasons = [own, original].map(({ body }) =>
            body.status?.allowed === false
              ? [...String(body.status.reason ?? '').matchAll(/"[^"]*" not found/g)].map(String).sort()
              : [],
          )
          if (!isDeepStrictEqual(answers[0], answers[1]) || !isDeepStrictEqual(reasons[0], reasons[1]))
            differences.push({ spec, answers, reasons })
        })
      },
      'ask',
    )
    expect(differences).toEqual([])
    // A question that is always answered alike proves nothing.
    expect(allowed).toBeGreaterThan(QUESTIONS * 0.1)
    expect(allowed).toBeLessThan(QUESTIONS * 0.9)
  })

  const as = ({ user, groups }: Somebody, more: readonly string[] = []) => ({
    as: { user, groups: [...groups, ...more].filter(Boolean) },
  })

  it('lists what somebody may do, and lets them grant no more, as the original does', {
    timeout: 60_000 + QUESTIONS * 100,
  }, async () => {
    const differences: object[] = []
    const codes = new Map<number, number>()
    await inWorlds(
      Math.ceil(QUESTIONS / 2),
      async (random, count, world) => {
        const questions = Array.from({ length: count }, (_, at) => {
          const namespace = random.one(NAMESPACES)
          const held = random.chance(0.5) ? random.nearlyHeld(world) : undefined
          const object = objectToWrite(random, `new-${at}`, world)
          const role = { apiVersion: object.apiVersion, kind: 'ClusterRole', metadata: { name: `new-${at}` } }
          if (!held) return { who: random.somebody(), namespace, object }
          return { who: held.who, namespace, object: random.chance(0.6) ? { ...role, rules: held.rules } : object }
        })
        await each(questions, async ({ who, namespace, object }) => {
          const lists = await Promise.all(
            [ours, real].map(async (subject) => {
              const { body } = await subject.ask('POST', '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', {
                body: { spec: { namespace } },
                ...as(who),
              })
              const { resourceRules = [], nonResourceRules = [], incomplete, evaluationError } = body.status ?? {}
              return {
                rules: rulesAsSet([...resourceRules, ...nonResourceRules]),
                incomplete,
                faulty: Boolean(evaluationError),
              }
            }),
          )
          if (!isDeepStrictEqual(lists[0], lists[1])) differences.push({ who, namespace, lists })
          const query = { dryRun: 'All' }
          const writes = await Promise.all(
            [ours, real].map((subject) =>
              subject.ask('POST', pathOf(object), { body: object, query, ...as(who, [WRITERS]) }),
            ),
          )
          const [own, original] = writes
          codes.set(original?.code ?? 0, (codes.get(original?.code ?? 0) ?? 0) + 1)
          if (own?.code !== original?.code)
            differences.push({ who, object, answers: writes.map(({ code, body }) => `${code} ${body.message ?? ''}`) })
        })
      },
      'write',
    )
    expect(differences).toEqual([])
    expect([...codes.keys()].sort()).toEqual(expect.arrayContaining([201, 403]))
  })

  function objectToWrite(random: RandomRbac, name: string, world: RbacWorld): ApiObject {
    const kind = random.count(3)
    const namespace = random.one(NAMESPACES)
    const roles = [...world.clusterRoles.map(({ metadata }) => metadata.name), 'missing']
    if (kind === 0) return random.clusterRole(name, random.chance(0.1))
    if (kind === 1) return random.role(name, namespace)
    return kind === 2
      ? random.clusterRoleBinding(name, ['view', ...roles])
      : random.roleBinding(name, namespace, ['view', ...roles], roles)
  }

  it('has the roles and bindings that the original makes by itself', async () => {
    const essence = ({
      metadata: { name, labels, annotations },
      rules,
      aggregationRule,
      subjects,
      roleRef,
    }: RoleObject & Partial<BindingObject>) => ({
      name,
      labels,
      annotations,
      // Filled by a controller, where one runs.
      ...(aggregationRule && !collects ? {} : { rules: rulesAsSet(rules ?? []) }),
      aggregationRule: aggregationRule ?? undefined,
      subjects,
      roleRef,
    })
    for (const { name, groups } of defaultRoles)
      for (const plural of ['clusterroles', ...(groups ? ['clusterrolebindings'] : [])]) {
        const read = async (subject: Subject) => essence((await subject.ask('GET', `${RBAC}/${plural}/${name}`)).body)
        await expect
          .poll(async () => isDeepStrictEqual(await read(ours), await read(real)))
          .toBe(true)
          .catch(async () => expect(await read(ours)).toEqual(await read(real)))
      }
  })
})
