// What the admin client reports about groups and does to them.
"use strict";

const { AssignerProtocol } = require("kafkajs");

function assignment(encoded) {
  if (encoded.length === 0) {
    return [];
  }
  const decoded = AssignerProtocol.MemberAssignment.decode(encoded).assignment;
  return Object.entries(decoded).flatMap(([topic, partitions]) => partitions.map((partition) => [topic, partition]));
}

async function describe(admin, group) {
  const { groups } = await admin.describeGroups([group]);
  const { state, protocol, members } = groups[0];
  return {
    state,
    assignor: protocol,
    members: members.map(({ clientId, memberAssignment }) => ({
      client_id: clientId,
      instance_id: null,
      assignment: assignment(memberAssignment),
    })),
  };
}

async function offsets(admin, group) {
  const found = await admin.fetchOffsets({ groupId: group });
  return found.flatMap(({ topic, partitions }) =>
    partitions.map(({ partition, offset, metadata }) => [topic, partition, Number(offset), metadata]),
  );
}

async function setOffsets(admin, group, rows) {
  for (const topic of new Set(rows.map(([name]) => name))) {
    const partitions = rows
      .filter(([name]) => name === topic)
      .map(([, partition, offset]) => ({ partition, offset: String(offset) }));
    await admin.setOffsets({ groupId: group, topic, partitions });
  }
}

const calls = (admin) => ({
  group_list: async () => (await admin.listGroups()).groups.map(({ groupId }) => [groupId, null]),
  group_describe: ({ group }) => describe(admin, group),
  group_delete: ({ group }) => admin.deleteGroups([group]),
  group_offsets: ({ group }) => offsets(admin, group),
  group_set_offsets: ({ group, offsets: rows }) => setOffsets(admin, group, rows),
});

module.exports = { calls };
