import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;

import javax.management.JMException;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/**
 * Counters of a running Kafka, over JMX at a port of this machine.
 * A line in: a pattern of MBean names. Lines out: the name of each, a tab, its Count; an empty line ends them.
 */
final class MetricCounts {
    private MetricCounts() {
    }

    public static void main(String[] arguments) throws IOException, JMException {
        String address = "service:jmx:rmi:///jndi/rmi://127.0.0.1:" + arguments[0] + "/jmxrmi";
        try (JMXConnector connector = JMXConnectorFactory.connect(new JMXServiceURL(address))) {
            MBeanServerConnection server = connector.getMBeanServerConnection();
            BufferedReader patterns = new BufferedReader(new InputStreamReader(System.in));
            for (String pattern = patterns.readLine(); pattern != null; pattern = patterns.readLine()) {
                for (ObjectName name : server.queryNames(new ObjectName(pattern), null)) {
                    System.out.println(name + "\t" + server.getAttribute(name, "Count"));
                }
                System.out.println();
                System.out.flush();
            }
        }
    }
}
