import { type Static, Type } from 'typebox'
import { defineKind, type KindObject } from '../kind.ts'
import { Text } from '../parts.ts'
import { OneOf } from '../words.ts'
import { KOLLECT_GROUP, KOLLECT_VERSION } from './names.ts'
import { Names, SecretRef } from './parts.ts'
import { LeftOut, SinkStatus, sinkColumns, sinkFields } from './sink-parts.ts'

const Git = Type.Object(
  {
    branch: Type.Optional(Text(244, 'branch; default: that after `#branch=` of the endpoint, else main')),
    pushPolicy: Type.Optional(
      OneOf(['Commit', 'ForcePush'], {
        default: 'Commit',
        description: 'ForcePush is refused, unless KOLLECT_SEMANTICS is original',
      }),
    ),
    auth: Type.Optional(
      Type.Object(
        {
          type: Type.Optional(
            OneOf(['token', 'ssh'], { description: 'default: what the scheme of the endpoint needs' }),
          ),
          secretRef: Type.Optional(SecretRef('credentials; default: secretRef of the sink')),
        },
        { description: 'how it signs in' },
      ),
    ),
    commitMessage: Type.Optional(
      Text(
        1024,
        'first line of a commit; {cluster}, {namespace}, {name}, {generation}, {itemCount}, {checksum}, {checksumShort}, {exportedAt}, {sink} and {path} are filled in',
      ),
    ),
    commitBody: Type.Optional(Text(8192, 'text below it, with the same values')),
    commitTrailers: Type.Optional(Names('trailer', 'lines such as `Reviewed-by: inventory`, with the same values')),
    author: Type.Optional(
      Type.Object(
        {
          name: Type.Optional(Text(253, 'default: kollect')),
          email: Type.Optional(Text(253, 'default: kollect@kollect.dev')),
        },
        { description: 'author of commits' },
      ),
    ),
    cloneDepth: Type.Optional(
      Type.Integer({ minimum: 1, format: 'int32', description: 'commits that are fetched; default: 1' }),
    ),
    prune: Type.Optional(
      Type.Boolean({ description: 'delete files that left the inventory; default: where each row has a file' }),
    ),
    engine: Type.Optional(OneOf(['go-git', 'cli'], { description: 'without effect: the git program is used' })),
    forceBasicAuth: Type.Optional(Type.Boolean({ description: 'send credentials before they are asked for' })),
  },
  { description: 'for type git, and for gitlab' },
)

const Spec = Type.Object(
  {
    type: OneOf(['git', 'gitlab', 's3', 'gcs', 'azureblob', 'http'], {
      description:
        'git; gitlab, which is git where gitlab.mergeRequest.mode is direct; s3. gcs, azureblob and http are refused',
    }),
    ...sinkFields,
    git: Type.Optional(Git),
    gitlab: Type.Optional(
      Type.Object(
        {
          mergeRequest: Type.Optional(
            Type.Object(
              {
                mode: Type.Optional(OneOf(['direct', 'merge_request'], { description: 'merge_request is refused' })),
                targetBranch: Type.Optional(Text(244, 'of merge requests')),
                branchPrefix: Type.Optional(Text(244, 'of merge requests')),
                titleTemplate: Type.Optional(Text(1024, 'of merge requests')),
                autoMerge: Type.Optional(Type.Boolean({ description: 'of merge requests' })),
              },
              { description: 'how commits arrive' },
            ),
          ),
        },
        { description: 'for type gitlab' },
      ),
    ),
    objectStore: Type.Optional(
      Type.Object(
        {
          format: Type.Optional(OneOf(['json', 'parquet'], { description: 'parquet is refused' })),
          hotAttributes: Type.Optional(Names('attribute', 'refused: columns of parquet')),
          version: Type.Optional(Text(63, 'refused: it never had an effect')),
        },
        { description: 'for type s3' },
      ),
    ),
    http: LeftOut('the type http'),
  },
  { description: 'where documents go' },
)

/** A sink of documents. */
export const kollectSnapshotSink = defineKind({
  group: KOLLECT_GROUP,
  version: KOLLECT_VERSION,
  kind: 'KollectSnapshotSink',
  plural: 'kollectsnapshotsinks',
  singular: 'kollectsnapshotsink',
  shortNames: ['ksnap'],
  categories: [],
  description: 'A place for whole documents: a git repository, or a bucket of an S3 store.',
  columns: sinkColumns,
  spec: Spec,
  status: SinkStatus,
  example: {
    apiVersion: `${KOLLECT_GROUP}/${KOLLECT_VERSION}`,
    kind: 'KollectSnapshotSink',
    metadata: { name: 'git', namespace: 'team-a' },
    spec: {
      type: 'git',
      endpoint: 'https://git.example.com/team-a/inventory.git',
      secretRef: { name: 'git-token' },
      pathTemplate: 'clusters/{cluster}/inventory/{namespace}/{name}{extension}',
      git: { branch: 'main' },
    },
  },
})

/** Where documents go, and how they are written. */
export type KollectSnapshotSinkSpec = Static<typeof Spec>
/** What the agent says of a sink of any family. */
export type KollectSinkStatus = Static<typeof SinkStatus>
/** The object as the API keeps it. */
export type KollectSnapshotSink = KindObject<KollectSnapshotSinkSpec, KollectSinkStatus>
