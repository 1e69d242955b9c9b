import { type Static, Type } from 'typebox'
import type { RouteContract } from './contract.ts'
import { Name } from './parameters.ts'

export const listClusterSets = {
  method: 'GET',
  url: '/api/v2/cluster-sets',
  access: 'filtered',
  schema: {
    operationId: 'listClusterSets',
    summary: 'Sets of clusters (ManagedClusterSet) with clusters the caller may see, by name',
    response: Type.Object({
      items: Type.Array(
        Type.Object({ name: Type.String(), count: Type.Integer({ description: 'clusters of it the caller may see' }) }),
      ),
    }),
  },
} as const satisfies RouteContract
/** Sets of clusters, with how many of them whoever asks may see. */
export type ClusterSetsView = Static<(typeof listClusterSets)['schema']['response']>

export const getClusterSet = {
  method: 'GET',
  url: '/api/v2/cluster-sets/:name',
  access: 'filtered',
  schema: {
    operationId: 'getClusterSet',
    summary: 'Names of the clusters in one set that the caller may see',
    params: Type.Object({ name: Name('set') }),
    response: Type.Object({ name: Type.String(), clusters: Type.Array(Type.String()) }),
  },
} as const satisfies RouteContract
/** The clusters of one set. */
export type ClusterSetView = Static<(typeof getClusterSet)['schema']['response']>

const DecisionSchema = Type.Enum(['accept', 'deny', 'revoke', 'detach'], {
  description:
    'accept: approve its request and make it a member; deny: turn its requests down and end its membership; revoke: end it for good, with its certificates and tokens; detach: delete it, in order',
})
/** What may be decided about a cluster that is a member or asks to be one. */
export type MemberDecisionView = Static<typeof DecisionSchema>

/** The rows of `members` and `memberrequests` are those of every type: this decides about them. */
export const decideMember = {
  method: 'POST',
  url: '/api/v2/members/:name/:decision',
  access: 'administrator',
  schema: {
    operationId: 'decideMember',
    summary: 'Carries out a decision about a member, or a cluster that asks to be one; audited',
    params: Type.Object({ name: Name('cluster'), decision: DecisionSchema }),
    body: Type.Object({
      request: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 253,
          description:
            'the CertificateSigningRequest that is meant, needed where several with different keys wait; with deny: this one alone',
        }),
      ),
    }),
    response: Type.Object({ done: Type.Array(Type.String(), { description: 'what was done, a sentence each' }) }),
  },
} as const satisfies RouteContract
/** What was done about a member. */
export type MemberDecidedView = Static<(typeof decideMember)['schema']['response']>
