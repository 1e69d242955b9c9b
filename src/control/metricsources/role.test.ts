import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { createKubeClient, type KubeObject, namespaces, type Resource, whole } from '#kube'
import { noRealApiServer, startRealApiServer } from '../../../test/real-apiserver.ts'

const missing = process.env.CI_REQUIRE_ALL === '1' ? undefined : noRealApiServer()
const MANAGER = new URL('../../../deploy/base/manager.yaml', import.meta.url)
const NAMESPACE = 'clusterpulse'
const rbac = (kind: string, plural: string): Resource => ({
  ...{ group: 'rbac.authorization.k8s.io', version: 'v1', kind, plural, namespaced: true },
})
const reviews: Resource = {
  ...{ group: 'authorization.k8s.io', version: 'v1', kind: 'SubjectAccessReview', plural: 'subjectaccessreviews' },
  namespaced: false,
}

it.skipIf(missing)(
  `the manager may read MetricSources and registries and write their statuses, and nothing else of them${missing ? ` (skipped: ${missing})` : ''}`,
  async () => {
    const server = await startRealApiServer()
    if (!server) throw new Error('no real kube-apiserver')
    const kube = createKubeClient(server.access)
    try {
      await kube.create(whole(namespaces), { metadata: { name: NAMESPACE } })
      const documents = parseAllDocuments(await readFile(MANAGER, 'utf8')).map((one) => one.toJS() as KubeObject)
      for (const document of documents) {
        const metadata = { ...document.metadata, namespace: NAMESPACE }
        if (document.kind === 'Role') await kube.create(rbac('Role', 'roles'), { ...document, metadata })
        if (document.kind !== 'RoleBinding') continue
        const subjects = (document.subjects as object[]).map((subject) => ({ ...subject, namespace: NAMESPACE }))
        await kube.create(rbac('RoleBinding', 'rolebindings'), { ...document, metadata, subjects })
      }
      const may = async (verb: string, resource: string, namespace = NAMESPACE): Promise<boolean> => {
        const [plural, subresource] = resource.split('/')
        const asked = {
          namespace,
          verb,
          group: 'clusterpulse.io',
          resource: plural,
          ...(subresource && { subresource }),
        }
        const user = `system:serviceaccount:${NAMESPACE}:clusterpulse-manager`
        const spec = { user, resourceAttributes: asked }
        const review = await kube.create(reviews, { metadata: { name: '' }, spec })
        return (review.status as { readonly allowed: boolean }).allowed
      }
      // The server learns of new roles by watching them.
      await expect.poll(() => may('list', 'clusterconnections')).toBe(true)
      for (const plural of ['metricsources', 'registryconnections']) {
        for (const verb of ['get', 'list', 'watch'])
          expect([plural, verb, await may(verb, plural)]).toEqual([plural, verb, true])
        expect(await may('patch', `${plural}/status`)).toBe(true)
        for (const verb of ['create', 'update', 'patch', 'delete', 'deletecollection'])
          expect([plural, verb, await may(verb, plural)]).toEqual([plural, verb, false])
        expect(await may('list', plural, 'default')).toBe(false)
      }
    } finally {
      await kube[Symbol.asyncDispose]()
      await server.stop()
    }
  },
)
