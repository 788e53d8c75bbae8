import java.util.ArrayList;
import java.util.List;

/** The functions that the topologies apply. Each has its equal of the same name in functions.py. */
final class Functions {
    private Functions() {
    }

    /** Null has a text of its own, so that a function can show that it saw one. */
    static String text(Object value) {
        return value == null ? "-" : value.toString();
    }

    /** The text of a value, and null for null. */
    static String optional(Object value) {
        return value == null ? null : value.toString();
    }

    static String plus(Object left, Object right) {
        return text(left) + "+" + text(right);
    }

    static String first(String value) {
        return value == null || value.isEmpty() ? "-" : value.substring(0, 1);
    }

    static int length(String value) {
        return text(value).length();
    }

    static boolean isLong(String value) {
        return length(value) > 1;
    }

    static List<String> letters(String value) {
        List<String> found = new ArrayList<>();
        for (char letter : text(value).toCharArray()) {
            found.add(String.valueOf(letter));
        }
        return found;
    }

    /** An aggregate: its values in order. The value "x" deletes it, as an aggregator may by returning null. */
    static String appended(String aggregate, String value) {
        return "x".equals(value) ? null : text(aggregate) + text(value);
    }

    /** A subtractor for `appended`: the aggregate and a mark, so that the order of the calls shows. */
    static String removed(String aggregate, String value) {
        return text(aggregate) + "(" + text(value) + ")";
    }

    /** A foreign key: the first letter of the value; a value of one letter has none. */
    static String reference(String value) {
        return isLong(value) ? first(value) : null;
    }
}
