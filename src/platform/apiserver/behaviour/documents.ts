import { describe, expect, it } from 'vitest'
import { decodeObject, encodeObject } from '../protobuf/index.ts'
import { configMap, freshNamespace, type Subject } from './subject.ts'

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io'

export function documentBehaviour(subject: () => Subject): void {
  const ask: Subject['ask'] = (...args) => subject().ask(...args)

  describe('discovery', () => {
    it('lists groups, versions and resources', async () => {
      expect((await ask('GET', '/api')).body).toMatchObject({ kind: 'APIVersions', versions: ['v1'] })
      const { body: groups } = await ask('GET', '/apis')
      expect(groups).toMatchObject({ kind: 'APIGroupList', apiVersion: 'v1' })
      const coordination = {
        name: 'coordination.k8s.io',
        versions: [{ groupVersion: 'coordination.k8s.io/v1', version: 'v1' }],
        preferredVersion: { groupVersion: 'coordination.k8s.io/v1', version: 'v1' },
      }
      expect(groups.groups).toEqual(expect.arrayContaining([coordination]))
      expect((await ask('GET', '/apis/coordination.k8s.io')).body).toMatchObject(coordination)
      const { body: core } = await ask('GET', '/api/v1')
      expect(core).toMatchObject({ kind: 'APIResourceList', groupVersion: 'v1' })
      expect(core.resources).toEqual(
        expect.arrayContaining([
          expect.objectContaining({
            name: 'pods',
            singularName: 'pod',
            namespaced: true,
            kind: 'Pod',
            shortNames: ['po'],
            categories: ['all'],
          }),
          expect.objectContaining({
            name: 'namespaces/status',
            singularName: '',
            namespaced: false,
            kind: 'Namespace',
          }),
          expect.objectContaining({
            name: 'nodes',
            namespaced: false,
            verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
          }),
        ]),
      )
    })

    it('gives everything at once to those who ask', async () => {
      const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json'
      const answer = await ask('GET', '/apis', { accept })
      expect(answer.type).toContain('as=APIGroupDiscoveryList')
      expect(answer.body).toMatchObject({ kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.k8s.io/v2' })
      const apps = answer.body.items.find((item: { metadata: { name: string } }) => item.metadata.name === 'apps')
      const deployments = apps.versions[0].resources.find(
        (each: { resource: string }) => each.resource === 'deployments',
      )
      expect(deployments).toMatchObject({
        responseKind: { kind: 'Deployment' },
        scope: 'Namespaced',
        singularResource: 'deployment',
        shortNames: ['deploy'],
        categories: ['all'],
      })
      const subresources = deployments.subresources.map((each: { subresource: string }) => each.subresource)
      expect(subresources.sort()).toEqual(['scale', 'status'])
      const core = await ask('GET', '/api', { accept })
      expect(core.body.items[0].versions[0].version).toBe('v1')
    })

    it('says its version and that it is well', async () => {
      expect((await ask('GET', '/version')).body).toMatchObject({
        major: '1',
        gitVersion: expect.stringMatching(/^v1\./),
      })
      for (const path of ['/healthz', '/livez', '/readyz']) expect((await ask('GET', path)).body).toBe('ok')
      expect((await ask('GET', '/nowhere')).code).toBe(404)
    })

    it('publishes OpenAPI version 3 for every group version, and for patches their parameters', async () => {
      const { body: index } = await ask('GET', '/openapi/v3')
      expect(Object.keys(index.paths)).toEqual(expect.arrayContaining(['api/v1', 'apis/apps/v1']))
      expect(index.paths['apis/apps/v1'].serverRelativeURL).toMatch(/\/openapi\/v3\/apis\/apps\/v1(\?|$)/)
      const { body: document } = await ask('GET', '/openapi/v3/apis/apps/v1')
      const { patch } = document.paths['/apis/apps/v1/namespaces/{namespace}/deployments/{name}']
      expect(patch['x-kubernetes-group-version-kind']).toEqual({ group: 'apps', version: 'v1', kind: 'Deployment' })
      expect(JSON.stringify(patch.parameters)).toContain('fieldValidation')
    })
  })

  describe('representations', () => {
    it('gives the columns kubectl shows', async () => {
      const namespace = await freshNamespace(subject())
      const pods = `/api/v1/namespaces/${namespace}/pods`
      await ask('POST', pods, { body: { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', image: 'i' }] } } })
      const { body: table } = await ask('GET', pods, { accept: TABLE })
      expect(table).toMatchObject({ kind: 'Table', apiVersion: 'meta.k8s.io/v1' })
      expect(
        table.columnDefinitions.map((each: { name: string; priority: number }) => [each.name, each.priority]),
      ).toEqual([
        ['Name', 0],
        ['Ready', 0],
        ['Status', 0],
        ['Restarts', 0],
        ['Age', 0],
        ['IP', 1],
        ['Node', 1],
        ['Nominated Node', 1],
        ['Readiness Gates', 1],
      ])
      expect(table.rows[0].cells.slice(0, 4)).toEqual(['p', '0/1', 'Pending', '0'])
      expect(table.rows[0].object).toMatchObject({ kind: 'PartialObjectMetadata', metadata: { name: 'p' } })
      const bare = await ask('GET', pods, { accept: TABLE, query: { includeObject: 'None' } })
      expect(bare.body.rows[0].object ?? null).toBeNull()
      const whole = await ask('GET', `${pods}/p`, { accept: TABLE, query: { includeObject: 'Object' } })
      expect(whole.body.rows[0].object).toMatchObject({ kind: 'Pod', spec: { containers: [{ name: 'c' }] } })
    })

    it.each([
      [
        '/api/v1/nodes',
        [
          'Name',
          'Status',
          'Roles',
          'Age',
          'Version',
          'Internal-IP',
          'External-IP',
          'OS-Image',
          'Kernel-Version',
          'Container-Runtime',
        ],
      ],
      ['/api/v1/namespaces', ['Name', 'Status', 'Age']],
      ['/api/v1/secrets', ['Name', 'Type', 'Data', 'Age']],
      ['/api/v1/configmaps', ['Name', 'Data', 'Age']],
      ['/api/v1/services', ['Name', 'Type', 'Cluster-IP', 'External-IP', 'Port(s)', 'Age', 'Selector']],
      [
        '/api/v1/events',
        ['Last Seen', 'Type', 'Reason', 'Object', 'Subobject', 'Source', 'Message', 'First Seen', 'Count', 'Name'],
      ],
      [
        '/apis/apps/v1/deployments',
        ['Name', 'Ready', 'Up-to-date', 'Available', 'Age', 'Containers', 'Images', 'Selector'],
      ],
      ['/apis/apps/v1/replicasets', ['Name', 'Desired', 'Current', 'Ready', 'Age', 'Containers', 'Images', 'Selector']],
      [
        '/apis/apps/v1/daemonsets',
        [
          'Name',
          'Desired',
          'Current',
          'Ready',
          'Up-to-date',
          'Available',
          'Node Selector',
          'Age',
          'Containers',
          'Images',
          'Selector',
        ],
      ],
      ['/apis/apps/v1/statefulsets', ['Name', 'Ready', 'Age', 'Containers', 'Images']],
      ['/apis/batch/v1/jobs', ['Name', 'Status', 'Completions', 'Duration', 'Age', 'Containers', 'Images', 'Selector']],
      [
        '/apis/batch/v1/cronjobs',
        [
          'Name',
          'Schedule',
          'Timezone',
          'Suspend',
          'Active',
          'Last Schedule',
          'Age',
          'Containers',
          'Images',
          'Selector',
        ],
      ],
      [
        '/api/v1/persistentvolumeclaims',
        [
          'Name',
          'Status',
          'Volume',
          'Capacity',
          'Access Modes',
          'StorageClass',
          'VolumeAttributesClass',
          'Age',
          'VolumeMode',
        ],
      ],
      [
        '/api/v1/persistentvolumes',
        [
          'Name',
          'Capacity',
          'Access Modes',
          'Reclaim Policy',
          'Status',
          'Claim',
          'StorageClass',
          'VolumeAttributesClass',
          'Reason',
          'Age',
          'VolumeMode',
        ],
      ],
      [
        '/apis/storage.k8s.io/v1/storageclasses',
        ['Name', 'Provisioner', 'ReclaimPolicy', 'VolumeBindingMode', 'AllowVolumeExpansion', 'Age'],
      ],
      ['/apis/coordination.k8s.io/v1/leases', ['Name', 'Holder', 'Age']],
      ['/apis/apiextensions.k8s.io/v1/customresourcedefinitions', ['Name', 'Created At']],
      ['/apis/rbac.authorization.k8s.io/v1/clusterroles', ['Name', 'Created At']],
      [
        '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
        ['Name', 'Role', 'Age', 'Users', 'Groups', 'ServiceAccounts'],
      ],
      ['/api/v1/serviceaccounts', ['Name', 'Age']],
    ])('shows %s in its columns', async (path, columns) => {
      const { body } = await ask('GET', path, { accept: TABLE })
      const names: string[] = body.columnDefinitions.map((each: { name: string }) => each.name)
      expect(names).toEqual(columns)
    })

    it('gives metadata alone', async () => {
      const namespace = await freshNamespace(subject())
      await ask('POST', `/api/v1/namespaces/${namespace}/configmaps`, { body: configMap('a', { x: '1' }) })
      const at = `/api/v1/namespaces/${namespace}/configmaps`
      const one = await ask('GET', `${at}/a`, {
        accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
      })
      expect(one.body).toMatchObject({
        kind: 'PartialObjectMetadata',
        apiVersion: 'meta.k8s.io/v1',
        metadata: { name: 'a' },
      })
      expect(one.body.data).toBeUndefined()
      const list = await ask('GET', at, { accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io' })
      expect(list.body).toMatchObject({ kind: 'PartialObjectMetadataList', apiVersion: 'meta.k8s.io/v1' })
      expect(list.body.items[0].data).toBeUndefined()
    })

    it('gives YAML, the first it can of what is accepted, and 406 where there is nothing', async () => {
      const yaml = await ask('GET', '/api/v1/namespaces/default', { accept: 'application/yaml' })
      expect(yaml.type).toContain('application/yaml')
      expect(yaml.body).toContain('kind: Namespace')
      const second = await ask('GET', '/api/v1/namespaces/default', { accept: 'application/x-none, application/json' })
      expect(second.body.kind).toBe('Namespace')
      const none = await ask('GET', '/api/v1/namespaces/default', { accept: 'application/x-none' })
      expect(none.code).toBe(406)
      expect(none.body.reason).toBe('NotAcceptable')
    })
  })

  describe('the binary form', () => {
    const BINARY = 'application/vnd.kubernetes.protobuf'

    it('says of built-in kinds what JSON says, to those who ask, and JSON of the others', async () => {
      const namespace = await freshNamespace(subject())
      const at = `/api/v1/namespaces/${namespace}/pods`
      const spec = {
        nodeName: 'n',
        containers: [{ name: 'c', image: 'i', resources: { requests: { cpu: '100m', memory: '1Gi' } } }],
      }
      const { body: pod } = await ask('POST', at, { body: { metadata: { name: 'p', labels: { a: 'b' } }, spec } })
      for (const path of [`${at}/p`, `/api/v1/namespaces/${namespace}`]) {
        const binary = await ask('GET', path, { accept: `${BINARY},application/json` })
        expect(binary.type).toBe(BINARY)
        const { body: json } = await ask('GET', path)
        expect(decodeObject(binary.bytes)).toEqual(json)
      }
      const list = await ask('GET', at, { accept: `${BINARY},application/json` })
      expect(decodeObject(list.bytes)).toMatchObject({
        kind: 'PodList',
        items: [{ metadata: { uid: pod.metadata.uid }, spec }],
      })
      const crds = await ask('GET', '/apis/no.such.group/v1/things', { accept: `${BINARY},application/json` })
      expect(crds.code).toBe(404)
    })

    it('is understood in what is written', async () => {
      const namespace = await freshNamespace(subject())
      const made = await ask('POST', `/api/v1/namespaces/${namespace}/configmaps`, {
        body: encodeObject({ ...configMap('a', { x: '1' }), metadata: { name: 'a', labels: { l: 'v' } } }),
        type: BINARY,
      })
      expect(made.code, JSON.stringify(made.body)).toBe(201)
      expect(made.body).toMatchObject({ data: { x: '1' }, metadata: { labels: { l: 'v' } } })
      const broken = await ask('POST', `/api/v1/namespaces/${namespace}/configmaps`, {
        body: new Uint8Array([107, 56, 115, 0, 255, 255]),
        type: BINARY,
      })
      expect([400, 500]).toContain(broken.code)
    })

    it('comes in frames in a watch', async () => {
      const namespace = await freshNamespace(subject())
      const at = `/api/v1/namespaces/${namespace}/secrets`
      await ask('POST', at, { body: { metadata: { name: 's' }, data: { x: 'eA==' } } })
      await using stream = await subject().stream(at, { accept: `${BINARY};stream=watch`, query: { watch: '1' } })
      expect(stream.type).toBe(`${BINARY};stream=watch`)
      const head = Buffer.from(await stream.read(4))
      const frame = Buffer.from(await stream.read(head.readUInt32BE()))
      expect(frame.includes('ADDED')).toBe(true)
      // The object within the event has its own envelope.
      const object = decodeObject(frame.subarray(frame.indexOf('k8s\0')))
      expect(object).toMatchObject({ kind: 'Secret', metadata: { name: 's' }, data: { x: 'eA==' } })
    })
  })

  describe('access', () => {
    it('answers who I am and what I may', async () => {
      const who = await ask('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', { body: {} })
      expect(who.code).toBe(201)
      expect(who.body.status.userInfo).toMatchObject({
        username: 'admin',
        groups: expect.arrayContaining(['system:masters']),
      })
      const may = await ask('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
        body: { spec: { resourceAttributes: { verb: 'delete', resource: 'nodes' } } },
      })
      expect(may.code).toBe(201)
      expect(may.body.status.allowed).toBe(true)
      const rules = await ask('POST', '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', {
        body: { spec: { namespace: 'default' } },
      })
      expect(rules.body.status.resourceRules).toEqual(
        expect.arrayContaining([expect.objectContaining({ verbs: ['*'], apiGroups: ['*'], resources: ['*'] })]),
      )
    })

    it('answers what others may, and whose a token is', async () => {
      const nobody = await ask('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', {
        body: {
          spec: { user: 'somebody', resourceAttributes: { verb: 'get', resource: 'pods', namespace: 'default' } },
        },
      })
      expect(nobody.body.status.allowed).toBe(false)
      const unknown = await ask('POST', '/apis/authentication.k8s.io/v1/tokenreviews', {
        body: { spec: { token: 'none' } },
      })
      expect(unknown.code).toBe(201)
      expect(unknown.body.status.authenticated ?? false).toBe(false)
    })
  })
}
