import { expect, it } from 'vitest'
import { KubeError } from '#kube'
import { unanswered } from './unanswered.ts'

const failed = (webhook: string) =>
  new KubeError(
    'server',
    `PATCH /apis/cluster.open-cluster-management.io/v1/managedclusters/north: the cluster's API failed (500): Internal error occurred: failed calling webhook "${webhook}": failed to call webhook: connection refused`,
    { httpStatus: 500 },
  )

it('says that no manager answers where the API server could not ask it, and what to do', () => {
  expect(unanswered(failed('managedclusters.admission.clusterpulse.io'))).toMatchObject({
    code: 'kube_server',
    httpStatus: 500,
    message: expect.stringContaining('none answers; see `kubectl -n clusterpulse get pods`'),
  })
  for (const other of [failed('policy.example.com'), new Error('x'), new KubeError('forbidden', 'no')])
    expect(unanswered(other)).toBe(other)
})
