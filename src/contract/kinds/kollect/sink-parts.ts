import { Type } from 'typebox'
import { Bytes, Conditions, Moment, Text } from '../parts.ts'
import { OneOf } from '../words.ts'
import { exportMinInterval, Names, SecretRef, snapshotWindow } from './parts.ts'

/** A block of older manifests for what is not built: kept as it came, so that admission can say so. */
export const LeftOut = (what: string) =>
  Type.Optional(Type.Object({}, { additionalProperties: true, description: `refused: ${what}` }))

const layout = Type.Object(
  {
    mode: Type.Optional(
      OneOf(['document', 'perResource', 'split'], {
        default: 'document',
        description: 'document: one file for all rows; perResource: a file for each; split: that, and an index',
      }),
    ),
    content: Type.Optional(
      OneOf(['item', 'attributes', 'manifest'], {
        default: 'item',
        description: 'of a row: all of it, its attributes only, or the object that is embedded in it',
      }),
    ),
    pathTemplate: Type.Optional(
      Text(
        1024,
        'path of the file of a row; default: {cluster}/{sourceNamespace}/{kind}/{sourceName}{extension}. Also {namespace}, {name}, {generation}, {group}, {uid}, {targetNamespace}, {targetName}',
      ),
    ),
    index: Type.Optional(
      Type.Object(
        {
          enabled: Type.Optional(Type.Boolean({ description: 'of split only: write it' })),
          pathTemplate: Type.Optional(
            Text(1024, 'path of the index; default: inventory/{namespace}/{name}{extension}'),
          ),
        },
        { description: 'the index of split' },
      ),
    ),
    filename: Type.Optional(
      Type.Object(
        {
          groupInPath: Type.Optional(
            OneOf(['auto', 'always', 'never'], { description: 'whether {group} stands in paths; default: auto' }),
          ),
          lowercaseKind: Type.Optional(Type.Boolean({ description: '{kind} in small letters; default: true' })),
          maxSegmentLength: Type.Optional(
            Type.Integer({ minimum: 1, format: 'int32', description: 'of one value in characters; default: 63' }),
          ),
        },
        { description: 'how values become parts of paths' },
      ),
    ),
  },
  { description: 'the files that git gets' },
)

/** What sinks of every family have. */
export const sinkFields = {
  endpoint: Type.Optional(Text(2048, 'where the sink is; how it is written depends on the type')),
  secretRef: Type.Optional(SecretRef('credentials')),
  tls: Type.Optional(
    Type.Object(
      {
        insecureSkipVerify: Type.Optional(
          Type.Boolean({
            description:
              'do not verify the certificate: anyone in between can read what is sent. Shown in the condition TLSInsecure',
          }),
        ),
        caBundle: Type.Optional(
          Bytes(
            'the CAs its certificate is verified with: PEM in base64, as `base64 -w0 ca.pem` prints it; not beside caSecretRef',
          ),
        ),
        caSecretRef: Type.Optional(SecretRef('Secret with these CAs in `tls.crt`, `ca.crt` or `ca.pem`')),
      },
      { description: 'how its certificate is verified' },
    ),
  ),
  connectionTest: Type.Optional(
    Type.Boolean({
      description: 'look at the sink after each change, when exports fail or go on again, and each hour; default: true',
    }),
  ),
  cluster: Type.Optional(
    Text(
      63,
      'identity of this cluster in the sink, such as west; default: that of the agent. Never empty: clusters are told apart by it',
    ),
  ),
  pathTemplate: Type.Optional(
    Text(
      1024,
      'path of a document, such as clusters/{cluster}/inventory/{namespace}/{name}{extension}; {namespace} and {name} must be in it. Also {generation}',
    ),
  ),
  exportMinInterval: exportMinInterval(),
  snapshotWindow,
  serialization: Type.Optional(
    Type.Object(
      {
        format: Type.Optional(
          OneOf(['json', 'yaml', 'parquet', 'csv', 'ndjson'], {
            description: 'of documents; default: yaml for git, json for all others. parquet and csv are refused',
          }),
        ),
        compression: Type.Optional(
          OneOf(['none', 'gzip', 'snappy', 'zstd'], { description: 'anything but none is refused' }),
        ),
      },
      { description: 'how documents are written' },
    ),
  ),
  layout: Type.Optional(layout),
  provisioning: Type.Optional(
    Type.Object(
      {
        mode: Type.Optional(
          OneOf(['ensure', 'existing'], {
            description: 'ensure: make what is missing in the sink; existing: never; default: ensure',
          }),
        ),
        naming: Type.Optional(
          Type.Object(
            { template: Type.Optional(Text(1024, 'refused: write the name itself')) },
            { description: 'of older manifests' },
          ),
        ),
      },
      { description: 'whether tables, streams and branches are made' },
    ),
  ),
  deletionPolicy: Type.Optional(
    OneOf(['Delete', 'Retain'], {
      description:
        'what becomes of what was written when the inventory is deleted; default: Delete for rows and files, Retain for objects and events',
    }),
  ),
  options: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      maxProperties: 100,
      description: 'settings of the type: statement_timeout of postgres, sasl_mechanism of kafka. Never credentials',
    }),
  ),
}

/** What sinks of every family show. */
export const SinkStatus = Type.Object(
  {
    conditions: Conditions,
    cluster: Type.Optional(Text(63, 'identity that rows are written under: spec.cluster, else that of the agent')),
    lastTestedAt: Type.Optional(Moment('when the sink was looked at last, which is how old ConnectionVerified is')),
    inventories: Type.Optional(Type.Integer({ minimum: 0, description: 'how many inventories are written there' })),
    itemCount: Type.Optional(
      Type.Integer({ minimum: 0, description: 'rows of their last exports; absent before the first' }),
    ),
    lastExportTime: Type.Optional(Moment('of the latest export')),
    behindSince: Type.Optional(
      Moment('of the oldest change that the sink lacks, as inventories say it in sinkExports; absent: it lacks none'),
    ),
    preview: Type.Optional(
      Type.Object(
        {
          renderedAt: Type.Optional(Moment('when this was made')),
          inputSampleSource: Type.Optional(Text(1024, 'what it was made of')),
          provisioningMode: Type.Optional(Text(63, 'ensure or existing')),
          serializationFormat: Type.Optional(Text(63, 'format of documents')),
          objectPath: Type.Optional(Text(2048, 'path of a document')),
          git: Type.Optional(
            Type.Object(
              {
                sampleCommitSubject: Type.Optional(Text(1024, 'first line of the message of a commit')),
                sampleCommitBody: Type.Optional(Text(8192, 'the rest of it')),
              },
              { description: 'a commit' },
            ),
          ),
          layout: Type.Optional(
            Type.Object(
              {
                mode: Type.Optional(Text(63, 'document, perResource or split')),
                content: Type.Optional(Text(63, 'item, attributes or manifest')),
                prune: Type.Optional(Type.Boolean({ description: 'files that left the inventory are deleted' })),
                samplePaths: Type.Optional(Names('path', 'paths of files; at most three')),
              },
              { description: 'the files' },
            ),
          ),
          postgres: Type.Optional(
            Type.Object(
              { expectedDDL: Type.Optional(Text(32_768, 'what would make the tables')) },
              { description: 'the tables' },
            ),
          ),
          kafka: Type.Optional(Type.Object({ topic: Type.Optional(Text(253, 'topic')) }, { description: 'the topic' })),
          warnings: Type.Optional(Names('sentence', 'what should be looked at')),
        },
        { description: 'an example of what would be written; made while the annotation kollect.dev/preview is "true"' },
      ),
    ),
  },
  { description: 'what is seen; written by the agent' },
)

/** Columns of `kubectl get` of every sink. */
export const sinkColumns = [
  { name: 'Type', type: 'string', jsonPath: '.spec.type' },
  { name: 'Cluster', type: 'string', jsonPath: '.status.cluster' },
  {
    name: 'Verified',
    type: 'string',
    jsonPath: '.status.conditions[?(@.type=="ConnectionVerified")].status',
  },
  { name: 'Tested', type: 'date', jsonPath: '.status.lastTestedAt' },
  { name: 'Synced', type: 'string', jsonPath: '.status.conditions[?(@.type=="Synced")].status' },
  { name: 'Items', type: 'integer', jsonPath: '.status.itemCount' },
  { name: 'Exported', type: 'date', jsonPath: '.status.lastExportTime' },
  { name: 'Behind', type: 'date', jsonPath: '.status.behindSince' },
  { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
] as const
