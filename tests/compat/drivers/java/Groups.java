import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.common.TopicPartition;

/** What the admin client reports about groups and does to them. */
final class Groups {
    private final Admin admin;

    Groups(Admin admin) {
        this.admin = admin;
    }

    Object call(String call, JsonNode command) throws Exception {
        if (call.equals("group_list")) {
            return list(command);
        }
        String group = command.get("group").asText();
        return switch (call) {
            case "group_describe" -> describe(group, command);
            case "group_delete" -> done(admin.deleteConsumerGroups(List.of(group)).all(), command);
            case "group_offsets" -> offsets(group, command);
            case "group_set_offsets" ->
                done(admin.alterConsumerGroupOffsets(group, PollingConsumer.offsets(command.get("offsets"))).all(), command);
            case "group_delete_offsets" -> {
                Set<TopicPartition> partitions =
                    Set.copyOf(PollingConsumer.partitions(command.get("places")));
                yield done(admin.deleteConsumerGroupOffsets(group, partitions).all(), command);
            }
            default -> throw new IllegalArgumentException("no such call: " + call);
        };
    }

    private static <T> T done(Future<T> future, JsonNode command) throws Exception {
        return future.get(command.get("timeout_ms").asLong(), TimeUnit.MILLISECONDS);
    }

    private Object list(JsonNode command) throws Exception {
        List<Object> listed = new ArrayList<>();
        for (GroupListing group : done(admin.listGroups(ListGroupsOptions.forConsumerGroups()).all(), command)) {
            listed.add(List.of(group.groupId(), group.groupState().orElseThrow().toString()));
        }
        return listed;
    }

    private Object describe(String group, JsonNode command) throws Exception {
        ConsumerGroupDescription described =
            done(admin.describeConsumerGroups(List.of(group)).describedGroups().get(group), command);
        List<Object> members = new ArrayList<>();
        for (MemberDescription member : described.members()) {
            Map<String, Object> words = new HashMap<>();
            words.put("client_id", member.clientId());
            words.put("instance_id", member.groupInstanceId().orElse(null));
            words.put("assignment", member.assignment().topicPartitions().stream()
                .map(at -> List.of(at.topic(), at.partition())).toList());
            members.add(words);
        }
        return Map.of(
            "state", described.groupState().toString(), "assignor", described.partitionAssignor(), "members", members);
    }

    private Object offsets(String group, JsonNode command) throws Exception {
        List<Object> found = new ArrayList<>();
        done(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata(), command).forEach((at, offset) -> {
            if (offset != null) {
                found.add(List.of(at.topic(), at.partition(), offset.offset(), offset.metadata()));
            }
        });
        return found;
    }
}
