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

const Rights = Type.Array(Type.String(), { description: 'each as kubectl would name it' })
const RequestSchema = Type.Object({
  name: Type.String({ description: 'of the CertificateSigningRequest' }),
  member: Type.String(),
  address: Type.Union([Type.String(), Type.Null()]),
  key: Type.Union([Type.String(), Type.Null()], { description: 'SHA-256 of the public key, hex' }),
  requestedAt: Type.Union([Type.Number(), Type.Null()]),
  username: Type.Union([Type.String(), Type.Null()]),
  agentVersion: Type.Union([Type.String(), Type.Null()]),
  missing: Type.Array(Type.Enum(['approval', 'acceptance']), {
    description: 'what nobody decided yet: approval of the certificate, acceptance of the cluster',
  }),
})

export const getMemberDecisions = {
  method: 'GET',
  url: '/api/v2/members/decisions',
  access: 'authenticated',
  schema: {
    operationId: 'getMemberDecisions',
    summary: 'What the caller may decide about members, what they lack for the rest, and who asks to be one',
    querystring: Type.Object({ member: Type.Optional(Name('cluster')) }),
    response: Type.Object({
      may: Type.Array(DecisionSchema),
      rule: Type.Enum(['rights', 'administrators'], {
        description:
          "rights: those of the hub's API alone decide; administrators: administrators of the page may as well, as the hub is its own API",
      }),
      lacks: Type.Record(DecisionSchema, Rights, {
        description: 'what is missing, by decision that the caller may not',
      }),
      requests: Type.Array(RequestSchema, {
        maxItems: 500,
        description: 'those that wait, for whoever may accept or deny; of the member that is asked for, if any',
      }),
      waiting: Type.Integer({ description: 'how many wait, where not all of them are told' }),
    }),
  },
} as const satisfies RouteContract
/** What somebody may decide about members. */
export type MemberDecisionsView = Static<(typeof getMemberDecisions)['schema']['response']>

/** The rows of `members` and `memberrequests` are those of every type: this decides about them. */
export const decideMember = {
  method: 'POST',
  url: '/api/v2/members/:name/:decision',
  access: 'authenticated',
  schema: {
    operationId: 'decideMember',
    summary:
      "Carries out a decision about a member, or a cluster that asks to be one, for whom the hub's API lets; audited",
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
